package shop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import rankduel.Page;
import rankduel.Rankduel;
import rankduel.Slot;
import rankduel.Window;

/** A page of results: the whole integration of a search. */
final class Shop {
    private static final int LENGTH = 10;
    private static final int SESSIONS = 10_000;

    /** The list that a searcher pages through, as it was made for the first page. */
    private record Session(Engine.Query query, Engine.Found found, String page) {}

    private final Engine engine;
    private final Rankduel rankduel;
    private final Map<String, Session> sessions = Collections.synchronizedMap(new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Session> eldest) {
            return size() > SESSIONS;
        }
    });

    Shop(Engine engine, Rankduel rankduel) {
        this.engine = engine;
        this.rankduel = rankduel;
    }

    /** The page of this number, from 0. */
    Map<String, Object> page(Engine.Query query, int number) throws Exception {
        Session kept = sessions.get(query.unit());
        boolean continues = number > 0 && kept != null && kept.query().equals(query);
        Page page;
        Engine.Found found;
        if (continues) {
            found = kept.found();
            Window window = Window.of(LENGTH).from(LENGTH * number).forUnit(query.unit());
            page = rankduel.more(Page.fromJson(kept.page()).duel(), found.rankings(), window);
        } else {
            Search search = new Search(query);
            page = rankduel.page(search::rankings, Window.of(LENGTH).forUnit(query.unit()));
            found = search.found;
        }
        sessions.put(query.unit(), new Session(query, found, page.toJson()));
        return shown(page, found);
    }

    /** One search for the rankers that compete; the control's facets and ranking come with it. */
    private final class Search {
        private final Engine.Query query;
        private Engine.Found found;

        Search(Engine.Query query) {
            this.query = query;
        }

        Map<String, List<String>> rankings(Set<String> rankers) throws Exception {
            Set<String> wanted = new TreeSet<>(rankers);
            wanted.add(Engine.CONTROL);
            found = engine.search(wanted, query);
            return found.rankings();
        }
    }

    private Map<String, Object> shown(Page page, Engine.Found found) throws Exception {
        // an engine may refuse an empty list of keys
        Map<String, Engine.Product> products = page.slots().isEmpty() ? Map.of() : engine.products(page.documents());
        List<Object> results = new ArrayList<>();
        for (Slot slot : page.slots()) {
            Engine.Product product = products.get(slot.document());
            if (product != null) {
                results.add(Map.of("position", slot.position(), "id", slot.document(), "title", product.title(),
                        "category", product.category()));
            }
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        // a page of one ranker needs no clicks
        answer.put("duel_id", page.duel().left().equals(page.duel().right()) ? null : page.duelId());
        answer.put("fallback", page.duel().fallback());
        answer.put("categories", found.categories());
        answer.put("results", results);
        return answer;
    }
}
