package rankduel

import "fmt"

// Version is that of this client.
const Version = "0.1.0"

// checkServer returns an *Error if the server, with the version of its answer, is older than this
// client. Changes of the third number always fit.
func checkServer(version string) error {
	var major, minor, ownMajor, ownMinor int
	if _, err := fmt.Sscanf(version, "%d.%d.", &major, &minor); err != nil {
		return nil
	}
	if _, err := fmt.Sscanf(Version, "%d.%d.", &ownMajor, &ownMinor); err != nil {
		return err
	}
	if major > ownMajor || major == ownMajor && minor >= ownMinor {
		return nil
	}
	detail := fmt.Sprintf("the server has version %s, and this client %s: upgrade the server", version, Version)
	return &Error{Reason: "server-too-old", Detail: detail, Status: 200}
}
