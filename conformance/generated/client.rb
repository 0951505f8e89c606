# Create, duel, page, feedback and verdict with the client of openapi-generator for Ruby.

require 'rankduel_api'

def check(holds, found = nil)
  holds or raise "unexpected: #{found.inspect}"
end

url, name = ARGV
RankduelApi.configure { |config| config.scheme, config.host = url.split('://') }
experiments, duels, results = RankduelApi::ExperimentsApi.new, RankduelApi::DuelsApi.new, RankduelApi::ResultsApi.new

made = experiments.create(RankduelApi::NewExperimentBody.new(
  name:, rankers: ['a', 'b', RankduelApi::Ranker.new(id: 'c')], control: 'a', owner: 'generated', answer_window_seconds: 0,
  drift: RankduelApi::OnDrift::OFF, metrics: [RankduelApi::Metric.new(name: 'latency_ms', cap: 1000, limit: 400)],
  policy: RankduelApi::PolicySpec.new(kind: 'd-ts-verdict'), conclude_at: RankduelApi::ConcludeAt.new(max_duels: 10_000)
))
check made.status == RankduelApi::Status::RUNNING && made.owner == 'generated' && made.control == 'a', made
clicked = decided = 0
while clicked + decided < 10
  duel = duels.next_duel(name)
  next if duel.self_duel
  if decided < clicked
    outcome = duel.left == 'a' ? RankduelApi::Outcome::LEFT : RankduelApi::Outcome::RIGHT
    answer = RankduelApi::One.new(duel_id: duel.duel_id, outcome:)
    decided += 1
  else
    lists = { left: %w[d1 d2 d3], right: %w[d3 d1 d2] }
    page = duels.interleave(name, RankduelApi::InterleaveBody.new(duel_id: duel.duel_id, length: 3, **lists))
    check page.slots.length == 3, page
    answer = RankduelApi::One.new(duel_id: page.duel_id, clicks: [0])
    clicked += 1
  end
  answer.metrics = { 'a' => { 'latency_ms' => 12 } }
  receipt = duels.feedback(name, answer)
  check receipt.status == RankduelApi::FeedbackStatus::RECORDED, receipt
end
found = results.verdict(name)
check found.duels == 10 && found.state == RankduelApi::VerdictState::OPEN, found
change = RankduelApi::ExperimentChange.new(conclude_at: RankduelApi::ConcludeAtChange.new(max_duels: 10))
changed = experiments.change(name, '*', change)
check changed.conclude_at.max_duels == 10, changed
nil until experiments.read(name).status == RankduelApi::Status::CONCLUDED
concluded = results.verdict(name).concluded
check concluded.automatic && %w[a b c].include?(concluded.winner), concluded
begin
  check false, experiments.read('missing')
rescue RankduelApi::ApiError => e
  check JSON.parse(e.response_body)['type'] == '/problems/experiment-not-found', e
end
