# frozen_string_literal: true

require "json"
require "net/http"
require "time"
require "timeout"
require "uri"

module Rankduel
  # Requests to one server, each with its own connection. Each ends at its deadline, even if the
  # answer arrives slowly.
  class Transport
    def initialize(url, key)
      unless key.to_s.match?(/\A[!-~]*\z/)
        # the message must not show the key
        raise ArgumentError, "key has a character that no key has, such as a space, a line break or a typographic quote"
      end

      @uri = address(url)
      @headers = { "accept" => "application/json", "accept-encoding" => "identity", "connection" => "close",
                   "rankduel-version" => VERSION }
      @headers["authorization"] = "Bearer #{key}" unless key.to_s.empty?
    end

    # The value with decimals and fractions as floats: JSON would have them as text.
    def self.plain(value)
      case value
      when Hash then value.transform_values { |it| plain(it) }
      when Array then value.map { |it| plain(it) }
      when Integer then value
      when Numeric then value.to_f
      else value
      end
    end

    # A body as JSON. Raises `Error` if it has no form in JSON, as NaN has none.
    def self.encode(body)
      JSON.generate(plain(body))
    rescue StandardError => e
      raise Error.new("invalid-request", e.message)
    end

    # Without the key: errors and logs show what they inspect.
    def inspect
      "#<#{self.class} #{@uri}>"
    end

    # The content of an answer with status 200; `body` is a hash or its JSON, nil for a GET request,
    # which is never part of a search and also raises if the server is older than this client.
    def request(path, body, seconds)
      request = build(path, body)
      raise Error.new("timeout", "there was no time left") unless seconds.positive?

      response = Timeout.timeout(seconds, DeadlinePassed) { exchange(request) }
      found = content(response)
      check_server(response["rankduel-version"].to_s) if body.nil?
      found
    rescue DeadlinePassed, Net::OpenTimeout, Net::ReadTimeout, Net::WriteTimeout
      raise Error.new("timeout", "no answer within #{seconds} s")
    rescue Error
      raise
    rescue StandardError => e
      # whatever it is, the search must get a page
      raise Error.new("unreachable", "#{e.class}: #{e.message}")
    end

    # Ends a request. It is not a StandardError, so that no code within the request rescues it.
    class DeadlinePassed < Exception
    end
    private_constant :DeadlinePassed

    private

    def address(url)
      uri = begin
        URI.parse(url)
      rescue URI::InvalidURIError
        nil
      end
      return uri if address?(uri) && url.match?(/\A[!-~]+\z/)

      # the message must not show a password
      shown = url.to_s.include?("@") ? "url" : url.inspect
      raise ArgumentError, "#{shown} is not the address of a server; it must look like http://rankduel.internal:7171"
    end

    def address?(uri)
      uri.is_a?(URI::HTTP) && !uri.host.to_s.empty? && uri.port.between?(1, 65_535) &&
        [uri.userinfo, uri.query, uri.fragment].none?
    end

    def build(path, body)
      kind = body.nil? ? Net::HTTP::Get : Net::HTTP::Post
      request = kind.new("#{@uri.path.sub(%r{/+\z}, "")}#{path}", @headers)
      unless body.nil?
        request["content-type"] = "application/json"
        request.body = body.is_a?(String) ? body : Transport.encode(body)
      end
      request
    end

    def check_server(version)
      return unless version.match?(/\A\d+\.\d+\./) && (release(version) <=> release(VERSION)).negative?

      detail = "the server has version #{version}, and this client #{VERSION}: upgrade the server"
      raise Error.new("server-too-old", detail, status: 200)
    end

    # Major and minor version; changes of the third number always fit.
    def release(version)
      version.split(".").first(2).map(&:to_i)
    end

    def exchange(request)
      http = Net::HTTP.new(@uri.hostname, @uri.port)
      http.use_ssl = @uri.scheme == "https"
      http.max_retries = 0
      response = http.start { http.request(request) }
      # Net::HTTP accepts an answer that ends before its length
      missing = response.content_length.to_i - response.body.to_s.bytesize
      raise EOFError, "the answer lacks #{missing} bytes" if missing.positive?

      response
    end

    def content(response)
      status = response.code.to_i
      found = parsed(response)
      if status == 200
        return found if found.is_a?(Hash)

        raise Error.not_rankduel("its content is not a JSON object, its type is #{response.content_type.inspect}")
      end
      raise problem(response, status, found.is_a?(Hash) ? found : {})
    end

    def parsed(response)
      return nil unless %r{\Aapplication/(.+\+)?json\z}i.match?(response.content_type.to_s)

      JSON.parse(response.body.to_s)
    rescue JSON::ParserError, EncodingError
      nil
    end

    def problem(response, status, found)
      slug = found["type"].to_s.split("/").last
      errors = found["errors"].is_a?(Array) ? found["errors"].grep(Hash) : []
      where = errors.map { |error| "; #{error["pointer"]}: #{error["detail"]}" }.join
      Error.new(slug || "status-#{status}", "#{found["detail"] || "status #{status}"}#{where}",
                status: status, retry_after: retry_after(response))
    end

    # What Retry-After says in seconds, also as a date: by the clock of the server, if it says what
    # that is.
    def retry_after(response)
      text = response["retry-after"].to_s
      return text.to_i if text.match?(/\A\d{1,9}\z/)

      till = time_of(text)
      till && [(till - (time_of(response["date"].to_s) || Time.now)).ceil, 0].max
    end

    def time_of(text)
      Time.httpdate(text)
    rescue ArgumentError
      nil
    end
  end
  private_constant :Transport
end
