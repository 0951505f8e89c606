# frozen_string_literal: true

module Rankduel
  # A request without a successful answer.
  class Error < StandardError
    # `timeout`, `unreachable`, `not-rankduel`, `server-too-old`, `resting`, `control-unknown`,
    # `ranker-failed`, the slug of the problem such as `duel-expired`, or else `status-502`.
    attr_reader :reason
    # The status of the answer, if there was one.
    attr_reader :status
    # In seconds, if the answer names it.
    attr_reader :retry_after

    def initialize(reason, detail, status: nil, retry_after: nil)
      super("#{reason}: #{detail}")
      @reason = reason
      @status = status
      @retry_after = retry_after
    end

    def self.not_rankduel(detail)
      new("not-rankduel", "the answer is not from rankduel: #{detail}", status: 200)
    end

    # Whether the server did not answer, or failed: the same request may succeed in a moment.
    def transient?
      return %w[timeout unreachable].include?(reason) if status.nil?

      reason == "not-rankduel" || status >= 500 || [408, 429].include?(status)
    end

    # Whether the same request may succeed later. Besides transient errors, these are 401 and 403:
    # the key may be corrected.
    def retryable?
      transient? || [401, 403].include?(status)
    end
  end
end
