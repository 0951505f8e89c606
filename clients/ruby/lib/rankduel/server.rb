# frozen_string_literal: true

require "uri"

module Rankduel
  # One experiment of a server: the pause after failures, and the attempts to send feedback.
  class Server
    # After this many consecutive requests without an answer, the client pauses.
    FAILURES_TO_REST = 5
    REST_SECONDS = 1.0
    # The longest pause that a Retry-After of the server causes.
    LONGEST_REST = 5.0
    # A report has this share of its time for one attempt.
    ATTEMPTS = 5
    FIRST_WAIT = 0.1

    def initialize(transport, experiment)
      @transport = transport
      @path = "/v1/experiments/#{URI.encode_www_form_component(experiment).gsub("+", "%20")}"
      @lock = Mutex.new
      @failures = 0
      @rest_until = 0.0
    end

    # Requests a duel or a page, in one attempt: a search waits for the answer.
    def ask(path, body, seconds)
      before_asking
      answer = @transport.request(@path + path, body, seconds)
      after_asking(nil)
      answer
    rescue Error => e
      after_asking(e) unless e.reason == "resting"
      raise
    end

    # Sends one item of feedback. Transient errors are followed by another attempt while there is
    # time for a whole one; the server counts the item once.
    def report(item, seconds)
      repeated("/feedback", item, seconds) { |answer| status(answer) }
    end

    # Sends orders, like `report`. Returns a result for each.
    def orders(orders, seconds)
      repeated("/orders", { orders: orders }, seconds) do |answer|
        results = answer["results"]
        next results if results.is_a?(Array) && results.size == orders.size && results.all?(Hash)

        raise Error.not_rankduel("it has no result for each order")
      end
    end

    # Sends items of feedback, as JSON, together, in one attempt. Returns a result for each.
    def feedback(items, seconds)
      results = @transport.request("#{@path}/feedback", "{\"feedback\":[#{items.join(",")}]}", seconds)["results"]
      return results if results.is_a?(Array) && results.size == items.size

      raise Error.not_rankduel("it has no result for each item")
    end

    # The rankers of the experiment.
    def rankers(seconds)
      listed = @transport.request(@path, nil, seconds)["rankers"]
      ids = listed.is_a?(Array) ? listed.grep(Hash).map { |ranker| ranker["id"] } : []
      raise Error.not_rankduel("it has no rankers") if ids.empty?

      ids
    end

    private

    def repeated(path, body, seconds)
      content = Transport.encode(body)
      limit = seconds / ATTEMPTS
      last = now + seconds - limit
      (0..).each do |attempt|
        return yield(@transport.request(@path + path, content, limit))
      rescue Error => e
        wait = FIRST_WAIT * (2**[attempt, 10].min) * rand(0.5..1.0)
        wait = [wait, e.retry_after || 0].max
        raise if !e.transient? || now + wait > last

        sleep(wait)
      end
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def status(answer)
      status = answer["status"]
      status.is_a?(String) ? status : raise(Error.not_rankduel("it has no status"))
    end

    def before_asking
      @lock.synchronize do
        if now < @rest_until
          raise Error.new("resting", "the last requests failed, so the client sends none for a moment")
        end

        # this request probes the server; the others fall back until it has a result
        @rest_until = now + REST_SECONDS if @failures >= FAILURES_TO_REST
      end
    end

    def after_asking(failed)
      @lock.synchronize do
        failed = nil unless failed&.transient?
        @failures = failed ? @failures + 1 : 0
        rest = @failures >= FAILURES_TO_REST ? REST_SECONDS : 0.0
        @rest_until = now + [rest, [failed&.retry_after || 0, LONGEST_REST].min].max
      end
    end
  end
  private_constant :Server
end
