"""From UBI to rankduel: events arrive, count once, and survive what fails."""

from __future__ import annotations

import json
import unittest
from typing import Any

from running import Case, click, duel_of, one_of, until


class Events(Case):
    def test_clicks_arrive_and_count_once_although_posted_twice(self) -> None:
        sidecar = self.sidecar()
        pages = [sidecar.duel() for _ in range(4)]
        events = [click(page, one_of(page, "backward"), client_id=f"c-{n}") for n, page in enumerate(pages)]
        self.assertEqual(sidecar.post(*events), {"accepted": 4, "of_no_duel": 0, "refused": []})
        sidecar.until("rankduel", recorded=4)
        # in another order, with a view in between, and one by one
        sidecar.post(events[3], click(pages[0], "d0", action="view"), *events[:3])
        sidecar.until("rankduel", recorded=4, duplicate=4, ignored=1)
        status, _ = sidecar.send("POST", "/ubi_events", json.dumps(events[0]).encode())
        self.assertEqual(status, 202)
        sidecar.until("rankduel", recorded=4, duplicate=5, ignored=1)
        self.settle(*pages)
        self.assertEqual(self.wins(4), {"forward": 0, "backward": 4})

    def test_the_client_is_the_unit(self) -> None:
        sidecar = self.sidecar()
        pages = []
        # the page or the event may name the client
        for asked, clicked in (("c-1", None), (None, "c-1"), (None, "c-2")):
            pages.append(sidecar.duel(client_id=asked))
            sidecar.post(click(pages[-1], one_of(pages[-1], "forward"), client_id=clicked))
        sidecar.until("rankduel", recorded=3)
        self.settle(*pages)
        self.wins(3)
        heaviest = self.report("verdict")["rests_on"]["heaviest_units"]
        self.assertEqual([unit["answers"] for unit in heaviest], [2, 1])

    def test_an_event_may_carry_its_duel_and_others_are_not_sent(self) -> None:
        sidecar = self.sidecar()
        page = sidecar.duel()
        own = click(page, one_of(page, "forward"), query_id="of another system")
        own["event_attributes"]["duel_id"] = duel_of(page)
        answer = sidecar.post(own, click(page, "d1", query_id="unknown"), {"action_name": "login"})
        self.assertEqual(answer, {"accepted": 1, "of_no_duel": 2, "refused": []})
        sidecar.until("rankduel", recorded=1)

    def test_garbage_is_refused_with_a_reason_and_does_not_stop_the_others(self) -> None:
        sidecar = self.sidecar()
        page = sidecar.duel()
        good = click(page, one_of(page, "backward"))
        garbage: list[tuple[Any, str]] = [
            (7, "must be an object"),
            ({}, "`action_name`"),
            ({"action_name": 1}, "`action_name`"),
            ({**good, "action_name": "x" * 101}, "has 101 characters"),
            ({**good, "query_id": 5}, "`query_id` must be a text"),
            ({**good, "query_id": "\ud800"}, "surrogate"),
            ({**good, "event_attributes": []}, "`event_attributes` must be an object"),
            ({**good, "event_attributes": {"object": {"object_id": 1.5}}}, "object_id"),
            ({**good, "event_attributes": {"position": {"ordinal": True}}}, "ordinal"),
        ]
        answer = sidecar.post(*(event for event, _ in garbage), good)
        self.assertEqual((answer["accepted"], len(answer["refused"])), (1, len(garbage)))
        for index, (refused, (_, reason)) in enumerate(zip(answer["refused"], garbage)):
            self.assertEqual(refused["index"], index)
            self.assertIn(reason, refused["detail"])
        for body in (b"", b"{", b"7", b"\xff", b'[{"action_name": NaN}]', b"[" * 100_000, json.dumps([7]).encode()):
            with self.subTest(body[:20]):
                status, answer = sidecar.send("POST", "/ubi_events", body)
                self.assertEqual(status, 400)
                self.assertTrue(answer.get("detail") or answer["refused"][0]["detail"])
        self.assertEqual(sidecar.send("POST", "/ubi_events", json.dumps([good] * 1001).encode())[0], 400)
        sidecar.until("rankduel", recorded=1)
        self.assertEqual(sidecar.status()["events"], {"accepted": 1, "refused": len(garbage) + 1})

    def test_an_event_that_rankduel_cannot_read_does_not_stop_the_others(self) -> None:
        sidecar = self.sidecar()
        pages = [sidecar.duel() for _ in range(5)]
        events = [click(page, one_of(page, "forward")) for page in pages]
        events.insert(3, click(pages[0], 10**400))
        sidecar.post(*events)
        sidecar.until("rankduel", recorded=5, invalid=1)
        self.settle(*pages)
        self.assertEqual(self.wins(5), {"forward": 5, "backward": 0})

    def test_a_click_on_what_was_not_shown_is_counted_as_invalid(self) -> None:
        sidecar = self.sidecar()
        page = sidecar.duel()
        sidecar.post(click(page, "elsewhere"))
        sidecar.until("rankduel", invalid=1)


class Failures(Case):
    def test_events_wait_while_rankduel_is_down_and_the_sidecar_may_restart(self) -> None:
        sidecar = self.sidecar()
        pages = [sidecar.duel(client_id=f"c-{n}") for n in range(20)]
        self.stop_rankduel()
        for page in pages[:10]:
            sidecar.post(click(page, one_of(page, "backward")))
        # it has tried, and has kept the events
        until(lambda: sidecar.status()["sending"].get("failed", 0) > 0, "an attempt", sidecar.status)
        self.assertGreater(sidecar.status()["waiting_bytes"], 0)
        self.assertEqual(sidecar.status()["rankduel"], {})
        self.assertEqual(sidecar.stop(), 0)
        sidecar = self.sidecar()
        # these have only the `query_id` of a page from before the restart
        sidecar.post(*(click(page, one_of(page, "backward")) for page in pages[10:]))
        self.start_rankduel()
        sidecar.until("rankduel", recorded=20)
        self.assertEqual(sidecar.status()["waiting_bytes"], 0)
        self.settle(*pages)
        self.assertEqual(self.wins(20), {"forward": 0, "backward": 20})

    def test_rankduel_that_hangs_gets_the_events_later(self) -> None:
        sidecar = self.sidecar()
        page = sidecar.duel()
        self.freeze_rankduel()
        sidecar.post(click(page, one_of(page, "backward")))
        self.continue_rankduel()
        sidecar.until("rankduel", recorded=1)

    def test_a_full_queue_refuses_events_and_counts_them(self) -> None:
        sidecar = self.sidecar("--queue-bytes", "2000")
        page = sidecar.duel()
        self.stop_rankduel()
        event = click(page, one_of(page, "forward"))
        for taken in range(100):
            status, answer = sidecar.send("POST", "/ubi_events", json.dumps([event]).encode())
            if status != 202:
                break
        self.assertEqual(status, 503)
        self.assertIn("queue is full", answer["detail"])
        self.assertGreater(taken, 0)
        self.assertEqual(sidecar.status()["events"], {"accepted": taken, "dropped": 1})
        self.start_rankduel()
        sidecar.until("rankduel", recorded=1, **({"duplicate": taken - 1} if taken > 1 else {}))
        # there is space again
        sidecar.post(event)


class Followed(Case):
    def setUp(self) -> None:
        super().setUp()
        self.file = self.folder / "ubi_events.jsonl"

    def write(self, *events: Any) -> None:
        with self.file.open("ab") as file:
            for event in events:
                file.write(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n")

    def test_a_file_is_followed_through_garbage_rotation_and_a_restart(self) -> None:
        sidecar = self.sidecar("--events", str(self.file))
        pages = [sidecar.duel() for _ in range(6)]
        events = [click(page, one_of(page, "backward")) for page in pages]
        # half of a line is not an event yet
        half = json.dumps(events[1]).encode()
        self.write(events[0], b"{garbage\n", b"\xff\n", b"\n", {"action_name": "login"}, half[:30])
        sidecar.until("rankduel", recorded=1)
        sidecar.until("events", **{"refused": 2, "of no duel": 1})
        self.write(half[30:] + b"\n")
        sidecar.until("rankduel", recorded=2)
        self.file.rename(self.folder / "ubi_events.jsonl.1")
        self.write(events[2])
        sidecar.until("rankduel", recorded=3)
        self.assertEqual(sidecar.stop(), 0)
        self.write(events[3])
        sidecar = self.sidecar("--events", str(self.file))
        sidecar.until("rankduel", recorded=1)
        # as `logrotate` does with `copytruncate`
        self.file.write_bytes(b"")
        self.write(events[4])
        sidecar.until("rankduel", recorded=2)
        self.settle(*pages[:5])
        self.assertEqual(self.wins(5), {"forward": 0, "backward": 5})

    def test_the_file_may_come_later_and_a_line_that_is_too_long_is_passed_over(self) -> None:
        sidecar = self.sidecar("--events", str(self.file))
        page = sidecar.duel()
        self.write(b"x" * 3_000_000 + b"\n", click(page, one_of(page, "backward")))
        sidecar.until("rankduel", recorded=1)


class Spooled(Case):
    def setUp(self) -> None:
        super().setUp()
        self.spool = self.state / "events.jsonl"

    def test_the_queue_shrinks_once_rankduel_has_everything(self) -> None:
        sidecar = self.sidecar()
        page = sidecar.duel()
        event = click(page, one_of(page, "forward"))
        for round in range(1, 4):
            sidecar.post(*[event] * 500)
            sidecar.until("rankduel", recorded=1, duplicate=500 * round - 1)
        self.assertEqual(sidecar.status()["waiting_bytes"], 0)
        self.assertEqual(self.spool.stat().st_size, 0)

    def test_the_query_and_the_person_stay_out_of_it(self) -> None:
        sidecar = self.sidecar()
        page = sidecar.duel()
        self.stop_rankduel()
        sidecar.post(click(page, one_of(page, "forward"), user_id="u-1", message="for u-1"))
        (event,) = map(json.loads, self.spool.read_text().split())
        self.assertEqual(set(event), {"action_name", "query_id", "client_id", "event_attributes"})
        self.assertEqual(set(event["event_attributes"]), {"duel_id", "object", "position"})


if __name__ == "__main__":
    unittest.main()
