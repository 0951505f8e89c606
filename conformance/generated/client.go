// Create, duel, page, feedback and verdict with the client of openapi-generator for Go.
package main

import (
	"context"
	"fmt"
	"os"

	api "rankduel_api"
)

func must[T any](result T, _ any, err error) T {
	check(err == nil, err)
	return result
}

func check(holds bool, found ...any) {
	if !holds {
		panic(fmt.Sprint(found...))
	}
}

func main() {
	name, context := os.Args[2], context.Background()
	configuration := api.NewConfiguration()
	configuration.Servers = api.ServerConfigurations{{URL: os.Args[1]}}
	client := api.NewAPIClient(configuration)

	rankers := []api.RankerBody{{String: api.PtrString("a")}, {String: api.PtrString("b")}, {Ranker: api.NewRanker("c")}}
	body := api.NewNewExperimentBody(name, rankers)
	body.Policy = api.NewPolicySpec("d-ts-verdict")
	body.ConcludeAt = &api.ConclusionRule{ConcludeAt: &api.ConcludeAt{MaxDuels: api.PtrInt64(10_000)}}
	body.Control, body.Owner, body.AnswerWindowSeconds = api.PtrString("a"), api.PtrString("generated"), api.PtrInt32(0)
	body.Drift = api.ONDRIFT_OFF.Ptr()
	body.Metrics = []api.Metric{{Name: "latency_ms", Cap: 1000, Limit: api.PtrFloat64(400)}}
	made := must(client.ExperimentsAPI.Create(context).NewExperimentBody(*body).Execute())
	check(made.Status == api.STATUS_RUNNING && made.Owner == "generated" && made.GetControl() == "a", made)

	for clicked, decided := 0, 0; clicked+decided < 10; {
		duel := must(client.DuelsAPI.NextDuel(context, name).Execute()).DuelAnswer
		if duel.SelfDuel {
			continue
		}
		answer := api.NewOne(duel.DuelId)
		if decided < clicked {
			answer.Outcome = api.OUTCOME_RIGHT.Ptr()
			if duel.Left == "a" {
				answer.Outcome = api.OUTCOME_LEFT.Ptr()
			}
			decided++
		} else {
			body := api.NewInterleaveBody(duel.DuelId, []string{"d1", "d2", "d3"}, 3)
			body.Right = []string{"d3", "d1", "d2"}
			page := must(client.DuelsAPI.Interleave(context, name).InterleaveBody(*body).Execute())
			check(len(page.Slots) == 3, page)
			answer = api.NewOne(page.DuelId)
			answer.Clicks = []api.Click{{Int64: api.PtrInt64(0)}}
			clicked++
		}
		answer.Metrics = map[string]map[string]float64{"a": {"latency_ms": 12}}
		result := must(client.DuelsAPI.Feedback(context, name).FeedbackBody(api.OneAsFeedbackBody(answer)).Execute())
		check(result.Receipt != nil && result.Receipt.Status == api.FEEDBACKSTATUS_RECORDED, result)
	}
	found := must(client.ResultsAPI.Verdict(context, name).Execute())
	check(found.Duels == 10 && found.State == api.VERDICTSTATE_OPEN, found)
	change := api.ExperimentChange{ConcludeAt: &api.ConclusionRuleChange{ConcludeAtChange: api.NewConcludeAtChange()}}
	change.ConcludeAt.ConcludeAtChange.SetMaxDuels(10)
	changed := must(client.ExperimentsAPI.Change(context, name).IfMatch("*").ExperimentChange(change).Execute())
	check(*changed.ConcludeAt.ConcludeAt.MaxDuels == 10, changed)
	for must(client.ExperimentsAPI.Read(context, name).Execute()).Status != api.STATUS_CONCLUDED {
	}
	concluded := must(client.ResultsAPI.Verdict(context, name).Execute()).Concluded.Get()
	check(concluded.Automatic && concluded.GetWinner() != "", concluded)
	_, _, err := client.ExperimentsAPI.Read(context, "missing").Execute()
	check(err.(*api.GenericOpenAPIError).Model().(api.Problem).Type == "/problems/experiment-not-found", err)
	_, _, err = client.ExperimentsAPI.List(context).Cursor("nowhere").Execute()
	check(*err.(*api.GenericOpenAPIError).Model().(api.Problem).Errors[0].Name == "cursor", err)
}
