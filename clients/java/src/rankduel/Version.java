package rankduel;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The version of this client, and whether a server is too old for it. */
final class Version {
    static final String CLIENT = "0.1.0";

    private static final Pattern RELEASE = Pattern.compile("(\\d{1,6})\\.(\\d{1,6})\\..*");

    private Version() {}

    /** Throws if the server, with the version of its answer, is older than this client. */
    static void checkServer(String version) throws RankduelException {
        if (release(version) < release(CLIENT)) {
            String detail =
                    "the server has version " + version + ", and this client " + CLIENT + ": upgrade the server";
            throw new RankduelException("server-too-old", detail, 200, 0, null);
        }
    }

    /** Major and minor version as one number; changes of the third number always fit. */
    private static long release(String version) {
        Matcher found = RELEASE.matcher(version);
        return found.matches()
                ? Long.parseLong(found.group(1)) * 1_000_000 + Long.parseLong(found.group(2))
                : Long.MAX_VALUE;
    }
}
