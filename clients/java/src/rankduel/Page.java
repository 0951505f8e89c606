package rankduel;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * One page of results, and its duel.
 *
 * @param duel the duel; its id is sent back with the clicks
 * @param slots the results to show, best first
 * @param total number of slots of all pages of the list
 * @param informative whether clicks on this page can favour one side
 */
public record Page(Duel duel, List<Slot> slots, int total, boolean informative) {
    /** The id to send back with the clicks; null for a fallback to the control. */
    public String duelId() {
        return duel.id();
    }

    /** The ids to show, best first. */
    public List<String> documents() {
        return slots.stream().map(Slot::document).toList();
    }

    /** The page as JSON, for a session or a cache. Keep it on the server: it names the rankers. */
    public String toJson() {
        Map<String, Object> members = duel.members();
        List<Object> listed = new ArrayList<>();
        for (Slot slot : slots) {
            Map<String, Object> one = new TreeMap<>();
            one.put("position", slot.position());
            one.put("document", slot.document());
            one.put("token", slot.token());
            listed.add(one);
        }
        members.put("slots", listed);
        members.put("total", total);
        members.put("informative", informative);
        return Json.write(members);
    }

    /** The page that {@link #toJson} wrote. */
    public static Page fromJson(String json) {
        Map<String, Object> members = Json.object(Json.read(json));
        return of(Duel.of(members), members);
    }

    static Page ofAnswer(Map<String, Object> answer, String left, String right) throws RankduelException {
        Duel duel = Duel.ofAnswer(answer, left, right);
        try {
            return of(duel, answer);
        } catch (IllegalArgumentException error) {
            throw RankduelException.notRankduel(error.getMessage());
        }
    }

    private static Page of(Duel duel, Map<String, Object> members) {
        List<Slot> slots = new ArrayList<>();
        for (Object listed : Json.list(members.get("slots"))) {
            Map<String, Object> slot = Json.object(listed);
            Object token = slot.get("token");
            int position = (int) Json.number(slot.get("position"));
            slots.add(new Slot(position, Json.string(slot.get("document")), token == null ? null : Json.string(token)));
        }
        int total = (int) Json.number(members.get("total"));
        return new Page(duel, List.copyOf(slots), total, Json.flag(members.get("informative")));
    }

    /** The control's ranking without repeats, with the pinned documents at their positions. */
    static Page ofControl(String control, List<String> ranking, String reason, Window window) {
        TreeMap<Integer, String> pins = new TreeMap<>(window.pinned());
        Set<String> shown = new HashSet<>(pins.values());
        List<String> documents = new ArrayList<>();
        for (String document : ranking) {
            if (!shown.add(document)) {
                continue;
            }
            while (pins.containsKey(documents.size())) {
                documents.add(pins.remove(documents.size()));
            }
            documents.add(document);
        }
        documents.addAll(pins.values());
        List<Slot> slots = new ArrayList<>();
        long end = Math.min(documents.size(), (long) window.offset() + window.length());
        for (int position = Math.max(window.offset(), 0); position < end; position += 1) {
            slots.add(new Slot(position, documents.get(position), null));
        }
        return new Page(Duel.ofControl(control, reason), List.copyOf(slots), documents.size(), false);
    }
}
