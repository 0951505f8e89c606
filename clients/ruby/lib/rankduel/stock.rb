# frozen_string_literal: true

module Rankduel
  # Up to `size` duels. Each is used once, and not later than `max_age` seconds after the request.
  class Stock
    def initialize(server, size, max_age)
      @server = server
      @size = size
      @max_age = max_age
      @lock = Mutex.new
      @duels = []
    end

    # The oldest fresh duel. If there is none, the stock is filled first, within this time.
    def take(seconds)
      found = fresh
      return found unless found.nil?

      requested_at = now
      first, *others = request(seconds)
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

    def request(seconds)
      duels = @server.ask("/next-duel", { count: @size }, seconds)["duels"]
      raise Error.not_rankduel("it has no duels") unless duels.is_a?(Array) && duels.any?

      duels.map { |duel| Duel.of_answer(duel) }
    end
  end
  private_constant :Stock
end
