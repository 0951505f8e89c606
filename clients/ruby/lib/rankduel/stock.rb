# frozen_string_literal: true

module Rankduel
  # Up to `size` duels. Each is used once, and not later than `max_age` seconds after the request.
  #
  # A server that does not know `count` refuses it once; from then on the stock makes single requests,
  # as many as the deadline allows.
  class Stock
    def initialize(server, size, max_age)
      @server = server
      @size = size
      @max_age = max_age
      @refuses_count = false
      @lock = Mutex.new
      @duels = []
    end

    # The oldest fresh duel. If there is none, the stock is filled first, within this time.
    def take(seconds)
      found = fresh
      return found unless found.nil?

      requested_at = now
      first, *others = request(requested_at + seconds)
      @lock.synchronize do
        # several threads may have filled the stock at the same time: keep the youngest duels
        @duels = (@duels + others.map { |duel| [requested_at, duel] }).last(2 * @size)
      end
      first
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def fresh
      @lock.synchronize do
        until @duels.empty?
          requested_at, duel = @duels.shift
          return duel if now - requested_at <= @max_age && duel.expires_at > Time.now.to_f
        end
      end
      nil
    end

    def request(last)
      @refuses_count ? singles([], last) : several(last)
    end

    def several(last)
      answer = @server.ask("/next-duel", { count: @size }, last - now)
      duels = answer["duels"]
      return duels.map { |duel| Duel.of_answer(duel) } if duels.is_a?(Array) && duels.any?

      singles([Duel.of_answer(answer)], last)
    rescue Error => e
      raise unless e.status == 422

      @refuses_count = true
      singles([], last)
    end

    def singles(duels, last)
      while duels.size < @size && (duels.empty? || now < last)
        begin
          duels << Duel.of_answer(@server.ask("/next-duel", {}, last - now))
        rescue Error
          raise if duels.empty?

          break
        end
      end
      duels
    end
  end
  private_constant :Stock
end
