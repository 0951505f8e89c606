# frozen_string_literal: true

# Tests without a server. A failure ends the program with an error.

require "bigdecimal"
require_relative "../lib/rankduel"

def same(wanted, found)
  raise "#{found.inspect} is not #{wanted.inspect}" unless wanted == found
end

def refuses
  yield
rescue ArgumentError
  nil
else
  raise "wrong arguments are accepted"
end

def client(url = "http://127.0.0.1:1", **options)
  # a long deadline, because a test machine may be busy
  Rankduel::Client.new(url, experiment: "search", control: "7", deadline: 60, **options)
end

duel = Rankduel::Duel.new(left: "bm25", right: "neural", duel_id: "AQ", expires_at: 1.5)
slots = [Rankduel::Slot.new(position: 0, document: "d\"雪", token: "t")]
page = Rankduel::Page.new(slots: slots, total: 1, informative: true, **duel.to_h)
same(page, Rankduel::Page.from_json(page.to_json))
same(duel, Rankduel::Duel.from_json(page.to_json))
same(duel, Rankduel::Duel.from_json(JSON.generate(duel)))

["rankduel:7171", "ftp://rankduel", "http://", "http://host/?a=b", "http://host/#a", "a b"].each do |url|
  refuses { client(url) }
end
refuses { client(deadline: 0) }
[0, -1, Float::NAN, Float::INFINITY, "0.05", nil].each do |limit|
  %i[deadline report_seconds stock_seconds].each { |name| refuses { client(name => limit) } }
end
[{ stock: -1 }, { stock: 1001 }, { queue: 0 }, { queue: 1.5 }, { key: "S3cret\n" }].each do |options|
  refuses { client(**options) }
end
refuses { client.more(duel) }
refuses { client.page({ "7" => "7" }) }
refuses { client.page { |_rankers| { "7" => nil } } }
refuses { client.page { |_rankers| {} } }
raise "the key is shown" if client(key: "S3cret").inspect.include?("S3cret")

# nobody listens at this port
reasons = []
page = client(on_fallback: ->(error) { reasons << error.reason }).page({ "7" => %w[a b a c] }, length: 2, offset: 1)
same([%w[b c], 3, "unreachable"], [page.documents, page.total, page.fallback])
same([], client.page({ "7" => ["a"] }, offset: 5).documents)
[["2", 2], [nil, 3], ["x", 3], [Float::INFINITY, 3], [-1, 0]].each do |length, shown|
  same(%w[a b c].first(shown), client.page({ "7" => %w[a b c] }, length: length, offset: "0").documents)
end
page = client(on_fallback: ->(error) { reasons << error.reason }).page({ "7" => ["\xff"] })
same([["\xff"], %w[unreachable invalid-request]], [page.documents, reasons])

# a page, whatever the rankings, the callback and the arguments are
odd = client(on_fallback: ->(_error) { raise "a callback that fails" })
[["a", nil], [{ "id" => "a" }], [Float::NAN], [17]].each do |ranking|
  same(ranking, odd.page({ "7" => ranking }).documents)
  same(ranking, odd.page { |_rankers| { "7" => ranking } }.documents)
end
same("ranker-failed", odd.page({ "7" => ["a"], "8" => "8" }).fallback)
same("ranker-failed", client.more(duel, { "7" => ["a"] }).fallback)
same([], odd.page({ "7" => ["a"] }, length: -1, offset: -1).documents)

# a price with decimals is a number
same('{"value":49.9,"parts":[0.5,2]}', Rankduel.const_get(:Transport).encode("value" => BigDecimal("49.90"), "parts" => [1/2r, 2]))

# the late item and the one that has no form in JSON spoil no other
messages = Class.new(Array) { def warn(message) = self << message && raise("a logger that fails") }.new
listener = TCPServer.new("127.0.0.1", 0)
Thread.new do
  while (socket = listener.accept)
    length = 0
    while (line = socket.gets.to_s.chomp) != ""
      length = line[/\d+/].to_i if line.start_with?(/content-length/i)
    end
    items = JSON.parse(socket.read(length))["feedback"]
    results = items.map { |item| { status: item["duel_id"] == "late" ? "late" : "recorded" } }
    text = JSON.generate(results: results)
    socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: #{text.size}\r\n\r\n#{text}")
    socket.close
  end
end
queued = client("http://127.0.0.1:#{listener.addr[1]}", logger: messages)
["a", "\xff", "late", "b"].each { |id| queued.queue_clicks(id, [0]) }
queued.queue_clicks("c", [Float::NAN])
queued.queue_clicks("", [0])
same(true, queued.close(Float::INFINITY))
same([2, 3, 0], queued.counts.to_h.values_at(:recorded, :refused, :waiting))
same([2, 1], [messages.grep(/invalid-request/).size, messages.grep(/final: false/).size])
puts "ruby: all passed"
