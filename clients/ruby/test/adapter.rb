# frozen_string_literal: true

# The adapter of this client for conformance/check_clients.py: one request and one answer a line.

require "json"
require_relative "../lib/rankduel"

# A failure of the search that the client calls.
class ApplicationError < StandardError
end

# A client under test, and the requests of the driver.
class Adapter
  def connect(given)
    @client = Rankduel::Client.new(
      given["url"], experiment: given["experiment"], control: given["control"], key: given["key"],
                    deadline: given["deadline_ms"] / 1000.0, report_seconds: given["report_ms"] / 1000.0,
                    stock: given["stock"], stock_seconds: given["stock_seconds"], queue: given["queue"]
    )
    { queue: true }
  end

  def check(_given)
    { rankers: @client.check }
  end

  def next_duel(given)
    members(@client.next_duel(unit: given["unit"], segment: given["segment"]))
  end

  def page(given)
    rankings, search = arguments(given)
    page = @client.page(rankings, **options(given), &search)
    { **members(Rankduel::Page.from_json(page.to_json)), "asked" => @asked }
  end

  def more(given)
    rankings, search = arguments(given)
    of = Rankduel::Duel.from_json(given["of"])
    { **members(@client.more(of, rankings, **options(given), &search)), "asked" => @asked }
  end

  def report_clicks(given)
    { status: @client.report_clicks(given["of"], given["clicks"], final: given["final"]) }
  end

  def report_outcome(given)
    { status: @client.report_outcome(given["of"], given["outcome"]) }
  end

  def report_metrics(given)
    { status: @client.report_metrics(given["of"], given["metrics"]) }
  end

  def report_orders(given)
    { results: @client.report_orders(given["orders"]) }
  end

  def queue_clicks(given)
    @client.queue_clicks(duel_of(given), given["clicks"], final: given["final"])
    {}
  end

  def queue_outcome(given)
    @client.queue_outcome(duel_of(given), given["outcome"])
    {}
  end

  def queue_metrics(given)
    @client.queue_metrics(duel_of(given), given["metrics"])
    {}
  end

  def flush(given)
    { flushed: @client.flush(given["milliseconds"] / 1000.0) }
  end

  def close(given)
    { flushed: @client.close(given["milliseconds"] / 1000.0) }
  end

  def counts(_given)
    @client.counts.to_h
  end

  private

  def duel_of(given)
    given["of"] ? Rankduel::Duel.from_json(given["of"]) : given["duel_id"]
  end

  def members(result)
    json = JSON.generate(result)
    JSON.parse(json).merge("json" => json)
  end

  def options(given)
    pinned = (given["pinned"] || []).to_h { |pin| [pin["position"], pin["document"]] }
    { length: given["length"], offset: given["offset"] || 0, pinned: pinned, unit: given["unit"],
      segment: given["segment"] }
  end

  def arguments(given)
    @asked = []
    return [given["rankings"], nil] if given["form"] == "all"

    failing, missing, others = %w[failing missing others].map { |name| given[name] || [] }
    [nil, lambda { |rankers|
      @asked << rankers
      raise ApplicationError if rankers.intersect?(failing)

      given["rankings"].slice(*((rankers | others) - missing))
    }]
  end
end

def answer(adapter, request)
  { ok: adapter.public_send(request["do"], request["with"]) }
rescue Rankduel::Error => e
  { error: { reason: e.reason, status: e.status, retry_after: e.retry_after, retryable: e.retryable? } }
rescue ApplicationError
  { error: { reason: "application" } }
rescue ArgumentError => e
  { error: { reason: "usage", detail: e.full_message(highlight: false) } }
end

adapter = Adapter.new
$stdout.sync = true
$stdin.each_line { |line| puts JSON.generate(answer(adapter, JSON.parse(line))) }
