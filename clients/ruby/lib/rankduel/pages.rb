# frozen_string_literal: true

require "json"
require "time"

module Rankduel
  # One result of a page: its position in the whole list (from 0; page 2 continues page 1), its
  # document, and the token that identifies it in feedback without revealing its ranker. The token
  # is nil on a fallback page.
  Slot = Struct.new(:position, :document, :token, keyword_init: true)

  # Reads the members of answers.
  module Answer
    module_function

    def member(answer, name, *types)
      value = answer.is_a?(Hash) ? answer[name] : nil
      return value if types.any? { |type| value.is_a?(type) }

      raise Error.not_rankduel("its #{name} is #{value.inspect}")
    end

    # nil if the page takes no part in the experiment
    def duel_id(answer)
      id = member(answer, "duel_id", String)
      id unless id.empty?
    end

    def seconds(answer, name)
      # to_f of a time may be off by a microsecond
      Time.iso8601(member(answer, name, String)).to_r.to_f
    rescue ArgumentError
      raise Error.not_rankduel("its #{name} is not a time")
    end
  end

  # The two rankers to interleave: `left` and `right`, the `duel_id` to send back with feedback,
  # `expires_at` in Unix seconds, and `fallback`. For a fallback to the control, the `duel_id` is
  # nil, and `fallback` is the reason: `timeout`, `unreachable`, `resting`, `not-rankduel`,
  # `ranker-failed`, or the slug of a problem such as `experiment-paused`.
  Duel = Struct.new(:left, :right, :duel_id, :expires_at, :fallback, keyword_init: true) do
    # Whether both are the same ranker. If so, show its ranking alone.
    def self_duel?
      left == right
    end

    # For a session or a cache. Keep it on the server: it names the rankers.
    def to_json(*options)
      to_h.to_json(*options)
    end

    # The duel that `to_json` of a duel or of a page wrote.
    def self.from_json(text)
      found = JSON.parse(text)
      new(**members.to_h { |name| [name, found[name.to_s]] })
    end

    def self.of_answer(answer)
      new(left: Answer.member(answer, "left", String), right: Answer.member(answer, "right", String),
          duel_id: Answer.duel_id(answer), expires_at: Answer.seconds(answer, "expires_at"))
    end

    def self.of_control(control, reason)
      new(left: control, right: control, expires_at: Rankduel::NEVER, fallback: reason)
    end
  end

  # One page of results: its `slots`, the `total` number of slots of all pages of the list, whether
  # it is `informative` (whether clicks can favour one side), and the members of its duel.
  Page = Struct.new(:slots, :total, :informative, :left, :right, :duel_id, :expires_at, :fallback,
                    keyword_init: true) do
    # The ids to show, best first.
    def documents
      slots.map(&:document)
    end

    # For a session or a cache. Keep it on the server: it names the rankers.
    def to_json(*options)
      to_h.merge(slots: slots.map(&:to_h)).to_json(*options)
    end

    # The page that `to_json` wrote.
    def self.from_json(text)
      found = JSON.parse(text)
      slots = found["slots"].map { |slot| Slot.new(**slot.transform_keys(&:to_sym)) }
      new(**members.to_h { |name| [name, found[name.to_s]] }, slots: slots)
    end

    def self.of_answer(answer, left, right)
      slots = Answer.member(answer, "slots", Array).map do |slot|
        Slot.new(position: Answer.member(slot, "position", Integer),
                 document: Answer.member(slot, "document", String), token: Answer.member(slot, "token", String))
      end
      new(slots: slots, total: Answer.member(answer, "total", Integer),
          informative: Answer.member(answer, "informative", TrueClass, FalseClass), left: left, right: right,
          duel_id: Answer.duel_id(answer), expires_at: Answer.seconds(answer, "expires_at"))
    end

    # The control's ranking without repeats, with the pinned documents at their positions.
    def self.of_control(control, ranking, reason, window)
      pins = window.pinned.dup
      documents = []
      (ranking.uniq - pins.values).each do |document|
        documents << pins.delete(documents.size) while pins.key?(documents.size)
        documents << document
      end
      documents.concat(pins.sort.map(&:last))
      slots = documents.each_with_index.map { |document, at| Slot.new(position: at, document: document) }
      # the server refuses an argument that is no number
      part = [[window.offset, 0], [window.length, 10]].map do |value, default|
        [Integer(value, exception: false) || default, 0].max
      end
      new(slots: slots[*part] || [], total: documents.size, informative: false,
          **Duel.of_control(control, reason).to_h)
    end
  end

  # The part of the list that a page shows: its `length`, the `offset` before it, `pinned` documents
  # by position (from 0), the `unit`, an opaque id of the user or the session, and the `segment`,
  # the part of the traffic that the page belongs to.
  Window = Struct.new(:length, :offset, :pinned, :unit, :segment, keyword_init: true) do
    def body
      body = { length: length, offset: offset }
      body[:pinned] = pinned.map { |position, document| { position: position, document: document } } if pinned.any?
      body.merge(Window.visit(unit, segment))
    end

    # The members of a request that say whose page it is, without those that are nil or empty.
    def self.visit(unit, segment)
      { unit: unit, segment: segment }.transform_values(&:to_s).reject { |_, value| value.empty? }
    end
  end

  # An expiry time for fallback pages, in Unix seconds: the year 2100.
  NEVER = 4_102_444_800.0
  private_constant :Answer, :Window
end
