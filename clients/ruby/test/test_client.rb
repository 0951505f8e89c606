# frozen_string_literal: true

# Tests without a server. A failure ends the program with an error.

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
refuses { client(stock: -1) }
refuses { client(queue: 0) }
refuses { client.page({ "7" => [] }, length: -1) }
refuses { client.more(duel) }

# nobody listens at this port
reasons = []
page = client(on_fallback: ->(error) { reasons << error.reason }).page({ "7" => %w[a b a c] }, length: 2, offset: 1)
same([%w[b c], 3, "unreachable"], [page.documents, page.total, page.fallback])
same([], client.page({ "7" => ["a"] }, offset: 5).documents)
page = client(on_fallback: ->(error) { reasons << error.reason }).page({ "7" => ["\xff"] })
same([["\xff"], %w[unreachable invalid-request]], [page.documents, reasons])
puts "ruby: all passed"
