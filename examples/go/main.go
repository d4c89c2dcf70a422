// Prints the changes of feature levels that come on stdin, one JSON value a line, as a consumer of
// featurewatch.feature-changes gets them:
//
//	kafka-console-consumer.sh --bootstrap-server $BUS --topic featurewatch.feature-changes | go run .
//
// The fields are those of the JSON Schema; unknown ones are ignored, as new ones may be added.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// FeatureChange has the fields of feature-changes.json that this program needs.
type FeatureChange struct {
	Cluster  string `json:"cluster"`
	Feature  string `json:"feature"`
	Before   int64  `json:"before"`
	After    int64  `json:"after"`
	Kind     string `json:"kind"`
	Revision int64  `json:"revision"`
}

func main() {
	seen := map[string]int64{} // the last revision by cluster and feature
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var change FeatureChange
		if err := json.Unmarshal(lines.Bytes(), &change); err != nil || change.Cluster == "" {
			fmt.Fprintf(os.Stderr, "not a change of version 1: %.100s\n", lines.Text())
			continue
		}
		key := change.Cluster + "/" + change.Feature
		if seen[key] >= change.Revision {
			continue // published twice
		}
		seen[key] = change.Revision
		fmt.Printf("%s %s %s: %d -> %d\n",
			change.Cluster, change.Kind, change.Feature, change.Before, change.After)
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
