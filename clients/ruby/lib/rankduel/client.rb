# frozen_string_literal: true

module Rankduel
  # One experiment of a rankduel server: requests the two rankings to interleave for a query, and
  # sends the clicks. Threads share a client.
  #
  #     rankduel = Rankduel::Client.new("http://127.0.0.1:7171", experiment: "search", control: "bm25")
  #     page = rankduel.page({ "bm25" => bm25, "neural" => neural })
  #     show(page.documents, page.duel_id)
  #     rankduel.report_clicks(duel_id, [0, 3])
  #
  # `page` always returns within the deadline. If the service does not answer in time, it returns
  # the control's ranking.
  class Client
    OUTCOMES = %w[left right tie none].freeze
    # Queued feedback of which only the `duel_id` is known is sent again for a day.
    KEPT_SECONDS = 24 * 3600
    # Above any useful time limit.
    LONGEST_LIMIT = 24 * 3600
    # The server issues no more duels at once.
    MOST_DUELS = 1000
    private_constant :KEPT_SECONDS, :LONGEST_LIMIT, :MOST_DUELS

    # `control` is the ranker to show if rankduel does not answer within `deadline` seconds. A
    # report of feedback has `report_seconds` for all attempts. With `stock`, the client requests
    # that many duels at once, and uses each for at most `stock_seconds`. At most `queue` items of
    # queued feedback wait to be sent; the `logger` warns of those that are refused or sent again.
    # `on_fallback` is called with the error behind each fallback to the control.
    def initialize(url, experiment:, control:, key: nil, deadline: 0.05, report_seconds: 10.0,
                   stock: 0, stock_seconds: 5.0, queue: 10_000, logger: nil, on_fallback: nil)
      { deadline: deadline, report_seconds: report_seconds, stock_seconds: stock_seconds }.each do |name, value|
        verify(name, value, "a number of seconds above 0 and at most a day") do
          value.is_a?(Numeric) && value.positive? && value <= LONGEST_LIMIT
        end
      end
      verify(:stock, stock, "from 0 to #{MOST_DUELS}") { stock.is_a?(Integer) && stock.between?(0, MOST_DUELS) }
      verify(:queue, queue, "at least 1") { queue.is_a?(Integer) && queue.positive? }
      { experiment: experiment, control: control }.each do |name, value|
        verify(name, value, "a name") { value.is_a?(String) && !value.empty? }
      end
      @experiment = experiment
      @control = control
      @deadline = deadline
      @report_seconds = report_seconds
      @on_fallback = on_fallback
      @server = Server.new(Transport.new(url, key), experiment)
      @queue = FeedbackQueue.new(@server, queue, logger)
      @stock = stock.positive? ? Stock.new(@server, stock, stock_seconds) : nil
    end

    # The rankers of the experiment. Call it when your service starts: it raises `Error` if the
    # server, the experiment or the key is wrong, or if the control is not one of the rankers, which
    # otherwise shows only in an outage. A key needs the scope `read` for it.
    def check
      rankers = @server.rankers(@report_seconds)
      return rankers if rankers.include?(@control)

      listed = rankers.join(", ")
      raise Error.new("control-unknown", "control is #{@control}, but the rankers of #{@experiment} are #{listed}")
    end

    # The two rankers to interleave. If rankduel does not answer in time, both are the control. The
    # `unit` is an opaque id of the user or the session, and the `segment` a label of 1 to 32 bytes
    # for the part of the traffic that the page belongs to, such as `mobile`. A duel with one of
    # them is requested by itself, not taken from the stock.
    def next_duel(unit: nil, segment: nil)
      visit = Window.visit(unit, segment)
      return @stock.take(@deadline) if @stock && visit.empty?

      Duel.of_answer(@server.ask("/next-duel", visit, @deadline))
    rescue Error => e
      Duel.of_control(@control, fell_back(e))
    end

    # A page of two interleaved rankings. If rankduel does not answer in time, it has the control's
    # ranking.
    #
    # `rankings` has the document ids of every ranker, best first. Instead of it, a block is called
    # once, with the one or two rankers that rankduel selects, and returns a hash of their ids. If
    # it fails, or one of these is missing or not an array, the page has the control's ranking. For
    # that, the block is called again with the control, unless the hash had the control's ids, too.
    # It raises only if there is nothing to show: the control's ranking is missing or not an array
    # (`ArgumentError`), or fails itself. `pinned` has documents by position (from 0).
    def page(rankings = nil, length: 10, offset: 0, pinned: {}, unit: nil, segment: nil, &search)
      options = { length: length, offset: offset, pinned: pinned, unit: unit, segment: segment }
      if rankings.nil?
        # with a stock, the unit and the segment go with the rankings alone
        duel = @stock ? next_duel : next_duel(unit: unit, segment: segment)
        return more(duel, **options, &search)
      end

      control = control_of(rankings)
      window = Window.new(**options)
      begin
        all = rankings.to_h { |ranker, _ranking| [ranker, sent(ranker, rankings)] }
        answer = @server.ask("/next-duel", window.body.merge(rankings: all), @deadline)
        duel = Duel.of_answer(answer)
        Page.of_answer(answer, duel.left, duel.right)
      rescue Error => e
        Page.of_control(@control, control, fell_back(e), window)
      end
    end

    # A page of an earlier duel: the first page of a duel from `next_duel`, or a later page of the
    # same list. Pass the same rankings (or block) and pins for every page of a duel. If rankduel
    # does not answer in time, or did not answer for the duel, the page has the control's ranking.
    def more(of, rankings = nil, length: 10, offset: 0, pinned: {}, unit: nil, segment: nil, &search)
      raise ArgumentError, "more needs rankings or a block" if rankings.nil? && search.nil?

      control_of(rankings) unless rankings.nil?
      search = ->(_rankers) { rankings } unless rankings.nil?
      window = Window.new(length: length, offset: offset, pinned: pinned, unit: unit, segment: segment)
      made = {}
      reason = of.fallback
      unless of.duel_id.nil?
        begin
          made = made_for(of, search)
          return interleaved(of, made, window)
        rescue Error => e
          reason = fell_back(e)
        end
      end
      made = search.call([@control]) unless Array.try_convert(made[@control])
      Page.of_control(@control, control_of(made), reason, window)
    end

    # Reports clicks on the page of a duel; `[]` if there were none. Each is a position, a document
    # id, or a hash with one of `position`, `document` and `slot`, and optionally an `event` such as
    # `purchase`. Returns `recorded`, `duplicate` or `late`; or `ignored` if `duel_id` is nil, which
    # is that of a fallback page.
    #
    # Clicks that come after a final call are late and do not count. If you call it once for each
    # click, pass `final: false`: more clicks can then follow, in any order, and all clicks of a
    # duel together count as one outcome.
    #
    # Transient failures are repeated while the time of a report lasts. Raises `Error`; if it is
    # `retryable?`, the same feedback may be accepted later.
    def report_clicks(duel_id, clicks, final: true)
      report(duel_id, clicks: clicks, final: final)
    end

    # Reports the outcome, if your own code merges the pages and credits the clicks: `left`,
    # `right`, `tie` or `none`.
    def report_outcome(duel_id, outcome)
      report(duel_id, outcome: known(outcome))
    end

    # Reports values of the experiment's metrics, by ranker and metric, such as
    # `{ "bm25" => { latency_ms: 12 }, "neural" => { latency_ms: 41 } }`. Report them for every page,
    # whether it is clicked or not: a value that does not come counts as the worst.
    def report_metrics(duel_id, metrics)
      report(duel_id, metrics: metrics)
    end

    # Sends orders, at most 1,000, to an experiment that orders decide. Returns a hash for each with
    # the `"status"` `recorded`, `duplicate`, `late`, `conflict` or `invalid`, and the `"detail"` of
    # one that the server refuses. An order is `{ order_id: "A-1009", unit: "c-17",
    # at: "2026-11-21T18:03:11Z", lines: [{ document: "d3", value: 49.9, quantity: 2 }] }`, or
    # `{ order_id: "A-1009", cancelled: true }`. The `unit` is that of the pages, and `at` the time of
    # the order. Transient failures are repeated as those of `report_clicks` are; a repeat never
    # counts twice.
    def report_orders(orders)
      orders = Array.try_convert(orders) || raise(ArgumentError, "orders is a #{orders.class}; it must be an array")
      @server.orders(orders, @report_seconds.to_f)
    end

    # `report_clicks` without waiting: a thread sends the clicks again until the server has them or
    # the duel has expired. `of` is a page, a duel, or a `duel_id`, whose clicks are kept for a day.
    # Those of a fallback page are ignored.
    def queue_clicks(of, clicks, final: true)
      put(of, clicks: clicks, final: final)
    end

    # `report_outcome` without waiting, like `queue_clicks`.
    def queue_outcome(of, outcome)
      put(of, outcome: known(outcome))
    end

    # `report_metrics` without waiting, like `queue_clicks`.
    def queue_metrics(of, metrics)
      put(of, metrics: metrics)
    end

    # The `Counts` of queued feedback so far, by result.
    def counts
      @queue.counts
    end

    # Waits at most this long until the server has all queued feedback. Returns whether it has.
    def flush(seconds = 10.0)
      @queue.flush(seconds)
    end

    # `flush`, and drops all later feedback for the queue. Call it before the process ends.
    def close(seconds = 10.0)
      @queue.close(seconds)
    end

    private

    def verify(name, value, wanted)
      raise ArgumentError, "#{name} is #{value.inspect}; it must be #{wanted}" unless yield
    end

    def ids(ranker, ranking)
      Array.try_convert(ranking) ||
        raise(ArgumentError, "the ranking of #{ranker} is a #{ranking.class}; it must be an array of document ids")
    end

    def sent(ranker, rankings)
      ids(ranker, rankings[ranker])
    rescue StandardError => e
      raise Error.new("ranker-failed", "#{ranker}: #{e.class}: #{e.message}")
    end

    def made_for(of, search)
      rankers = [of.left, of.right].uniq
      made = search.call(rankers)
      Hash.try_convert(made) || raise(ArgumentError, "rankings is a #{made.class}; it must be a hash")
    rescue StandardError => e
      raise Error.new("ranker-failed", "#{rankers.join(", ")}: #{e.class}: #{e.message}")
    end

    def interleaved(of, made, window)
      sides = { left: sent(of.left, made), right: sent(of.right, made) }
      body = window.body.merge(duel_id: of.duel_id, **sides)
      Page.of_answer(@server.ask("/interleave", body, @deadline), of.left, of.right)
    end

    def control_of(rankings)
      ranking = rankings.fetch(@control) do
        raise ArgumentError,
              "rankings lack the control, #{@control.inspect}, which is shown if rankduel does not answer"
      end
      ids(@control, ranking)
    end

    def report(duel_id, item)
      duel_id.to_s.empty? ? "ignored" : @server.report({ duel_id: duel_id, **item }, @report_seconds.to_f)
    end

    def known(outcome)
      return outcome if OUTCOMES.include?(outcome)

      raise ArgumentError, "outcome is #{outcome.inspect}; it must be left, right, tie or none"
    end

    def put(of, item)
      is_id = of.nil? || of.is_a?(String)
      duel_id = is_id ? of : of.duel_id
      expires_at = is_id ? Time.now.to_f + KEPT_SECONDS : of.expires_at
      @queue.put({ duel_id: duel_id, **item }, expires_at) unless duel_id.to_s.empty?
      nil
    end

    def fell_back(error)
      @on_fallback&.call(error)
      error.reason
    rescue StandardError
      # the page does not depend on it
      error.reason
    end
  end
end
