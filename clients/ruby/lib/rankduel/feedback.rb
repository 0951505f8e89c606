# frozen_string_literal: true

module Rankduel
  # Number of queued items of feedback since the client was created, by result:
  #
  # - `recorded`: stored by the server; they count.
  # - `duplicate`: stored already; an earlier attempt had arrived, but its answer was lost.
  # - `refused`: late, different from an earlier answer, or invalid. The logger has the reason.
  # - `dropped`: discarded by this client: the duel expired while the server could not be reached,
  #   the queue was full, or the client was closed.
  # - `waiting`: not sent yet, or not answered yet.
  Counts = Struct.new(:recorded, :duplicate, :refused, :dropped, :waiting, keyword_init: true)

  # Accepts feedback without waiting, and sends it in a thread that ends when the queue is empty.
  # The server counts each item once, even if it arrives several times.
  class FeedbackQueue
    BATCH = 100
    SEND_SECONDS = 10.0
    FIRST_WAIT = 0.1
    LONGEST_WAIT = 30.0
    # Statuses with which a server or a proxy refuses a whole request, perhaps for one of its items.
    ABOUT_AN_ITEM = [400, 413, 422].freeze
    Item = Struct.new(:json, :expires_at)
    private_constant :Item

    def initialize(server, most, logger)
      @server = server
      @most = most
      @logger = logger
      @lock = Mutex.new
      @changed = ConditionVariable.new
      @items = []
      @sending = []
      @together = BATCH
      @closing = false
      @thread = nil
      @counts = { recorded: 0, duplicate: 0, refused: 0, dropped: 0 }
    end

    # Queues an item. It is sent again until the server has it, at most until `expires_at`. An item
    # that has no form in JSON is refused at once.
    def put(body, expires_at)
      item = Item.new(Transport.encode(body), expires_at)
      @lock.synchronize do
        return count(:dropped) if @closing

        # drop the oldest item: newer ones have more time left to arrive
        count(:dropped) && @items.shift if @items.size >= @most
        @items << item
        start
      end
    rescue Error => e
      warn("refused: #{e.message}")
      @lock.synchronize { count(:refused) }
    end

    def counts
      @lock.synchronize { Counts.new(**@counts, waiting: @items.size + @sending.size) }
    end

    # Waits at most this long until nothing waits any more. Returns whether that is so.
    def flush(seconds)
      @lock.synchronize do
        @sending = [] unless @thread&.alive?
        start unless @items.empty?
        wait_until(seconds) { @items.empty? && @sending.empty? }
      end
    end

    # Flushes, and accepts no more items.
    def close(seconds)
      flushed = flush(seconds)
      @lock.synchronize do
        @closing = true
        @changed.broadcast
      end
      flushed
    end

    private

    # A forked process has a copy of the queue, but not the thread.
    def start
      return if @thread&.alive? && @running

      @running = true
      @sending = []
      @thread = Thread.new { run }
    end

    def count(result, number = 1)
      @counts[result] += number
    end

    def wait_until(seconds)
      last = now + seconds
      until yield
        left = last - now
        return false unless left.positive?

        @changed.wait(@lock, [left, LONGEST_WAIT].min)
      end
      true
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def run
      failures = 0
      while (batch = take)
        wait = send_batch(batch, failures)
        failures = wait.zero? ? 0 : failures + 1
        @lock.synchronize { wait_until(wait) { @closing } } unless wait.zero?
      end
    end

    # The next items to send; nil if there are none, or if the queue was closed.
    def take
      @lock.synchronize do
        count(:dropped, @items.slice!(0..).size) if @closing
        batch = []
        until @items.empty? || batch.size == @together
          item = @items.shift
          item.expires_at > Time.now.to_f ? batch << item : count(:dropped)
        end
        @running = false if batch.empty?
        @sending = batch
        @changed.broadcast
        batch.empty? ? nil : batch
      end
    end

    # Returns the seconds to wait before the next batch; 0 if this one has its results.
    def send_batch(batch, failures)
      results = @server.feedback(batch.map(&:json), SEND_SECONDS)
      @together = [2 * @together, BATCH].min
      settle(results.map { |result| result_of(result) })
      0
    rescue Error => e
      if ABOUT_AN_ITEM.include?(e.status) && batch.size > 1
        # send fewer together, until the item that is refused is alone
        @together = batch.size / 2
        return put_back(batch, 0)
      end
      return refuse(batch, e) unless e.retryable?

      warn("sent again later: #{e.message}") if failures.zero?
      wait = [FIRST_WAIT * (2**[failures, 10].min), LONGEST_WAIT].min * rand(0.5..1.0)
      put_back(batch, [wait, [e.retry_after || 0, LONGEST_WAIT].min].max)
    end

    def put_back(batch, wait)
      @lock.synchronize do
        @items.unshift(*batch)
        @sending = []
      end
      wait
    end

    def refuse(batch, error)
      warn("refused: #{error.message}")
      settle([:refused] * batch.size)
      0
    end

    def warn(what)
      @logger&.warn("rankduel: feedback is #{what}")
    rescue StandardError
      # the thread must go on for the other items
    end

    def result_of(result)
      status = result.is_a?(Hash) ? result["status"] : nil
      return status.to_sym if %w[recorded duplicate].include?(status)

      hint = "; if clicks come one by one, pass final: false" if status == "late"
      warn("refused: #{result.inspect}#{hint}")
      :refused
    end

    def settle(results)
      @lock.synchronize do
        results.tally.each { |result, number| count(result, number) }
        @sending = []
        @changed.broadcast
      end
    end
  end
  private_constant :FeedbackQueue
end
