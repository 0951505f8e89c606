// Create, duel, page, feedback and verdict with the client of openapi-generator for Java.

import com.fasterxml.jackson.databind.DeserializationFeature;
import java.net.http.HttpClient;
import java.util.List;
import java.util.Map;
import rankduel_api.ApiClient;
import rankduel_api.ApiException;
import rankduel_api.DuelsApi;
import rankduel_api.ExperimentsApi;
import rankduel_api.ResultsApi;
import rankduel_api.model.*;

class Client {
    static void check(boolean holds, Object found) {
        if (!holds) {
            throw new AssertionError(found);
        }
    }

    public static void main(String[] arguments) throws ApiException {
        var name = arguments[1];
        // one duel and several differ in their members alone
        var mapper = ApiClient.createDefaultObjectMapper().enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
        var client = new ApiClient(HttpClient.newBuilder(), mapper, arguments[0]);
        var experiments = new ExperimentsApi(client);
        var duels = new DuelsApi(client);
        var results = new ResultsApi(client);

        var made = experiments.create(new NewExperimentBody().name(name).control("a").owner("generated").answerWindowSeconds(0)
            .rankers(List.of(new RankerBody("a"), new RankerBody("b"), new RankerBody(new Ranker().id("c"))))
            .drift(OnDrift.OFF).metrics(List.of(new Metric().name("latency_ms").cap(1000.0).limit(400.0)))
            .policy(new PolicySpec().kind(PolicySpec.KindEnum.D_TS_VERDICT))
            .concludeAt(new ConclusionRule(new ConcludeAt().maxDuels(10_000L))));
        check(made.getStatus() == Status.RUNNING && made.getOwner().equals("generated") && made.getControl().equals("a"), made);
        int clicked = 0, decided = 0;
        while (clicked + decided < 10) {
            var duel = duels.nextDuel(name, null).getDuelAnswer();
            if (duel.getSelfDuel()) {
                continue;
            }
            var answer = new One().duelId(duel.getDuelId()).metrics(Map.of("a", Map.of("latency_ms", 12.0)));
            if (decided < clicked) {
                answer.outcome(duel.getLeft().equals("a") ? Outcome.LEFT : Outcome.RIGHT);
                decided++;
            } else {
                var page = duels.interleave(name, new InterleaveBody().duelId(duel.getDuelId()).length(3)
                    .left(List.of("d1", "d2", "d3")).right(List.of("d3", "d1", "d2")));
                check(page.getSlots().size() == 3, page);
                answer.duelId(page.getDuelId()).clicks(List.of(new Click(0L)));
                clicked++;
            }
            var receipt = duels.feedback(name, new FeedbackBody(answer)).getReceipt();
            check(receipt.getStatus() == FeedbackStatus.RECORDED, receipt);
        }
        var found = results.verdict(name, null, null, null);
        check(found.getDuels() == 10 && found.getState() == VerdictState.OPEN, found);
        var change = new ConclusionRuleChange(new ConcludeAtChange().maxDuels(10L));
        var changed = experiments.change(name, "*", new ExperimentChange().concludeAt(change));
        check(changed.getConcludeAt().getConcludeAt().getMaxDuels() == 10, changed);
        while (experiments.read(name, null).getStatus() != Status.CONCLUDED);
        var concluded = results.verdict(name, null, null, null).getConcluded();
        check(concluded.getAutomatic() && List.of("a", "b", "c").contains(concluded.getWinner()), concluded);
        try {
            check(false, experiments.read("missing", null));
        } catch (ApiException error) {
            check(error.getResponseBody().contains("/problems/experiment-not-found"), error);
        }
    }
}
