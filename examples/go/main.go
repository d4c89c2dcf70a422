// Prints the changes of feature levels, from the first one on, as featurewatch publishes them:
//
//	go run . kafka-1:9092 [PREFIX]
//
// The fields are those of the JSON Schema; unknown ones are ignored, as new ones may be added.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
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

// Decode returns the change that a message has; false: it has none of version 1.
func Decode(record *kgo.Record) (FeatureChange, bool) {
	var change FeatureChange
	for _, header := range record.Headers {
		if header.Key == "ce_dataschema" { // from version 2 on
			return change, false
		}
	}
	err := json.Unmarshal(record.Value, &change)
	return change, err == nil && change.Cluster != "" && change.Feature != "" && change.Kind != ""
}

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: changes BUS [PREFIX]")
		os.Exit(2)
	}
	prefix := "featurewatch"
	if len(os.Args) == 3 {
		prefix = os.Args[2]
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ConsumeTopics(prefix+".feature-changes"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer client.Close()
	ended, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	seen := map[string]int64{} // the last revision by cluster and feature
	for {
		fetches := client.PollFetches(ended)
		if ended.Err() != nil {
			return
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			fmt.Fprintf(os.Stderr, "%s-%d: %v\n", topic, partition, err)
		})
		fetches.EachRecord(func(record *kgo.Record) {
			change, ok := Decode(record)
			if !ok {
				fmt.Fprintf(os.Stderr, "not a change of version 1: %.100s\n", record.Value)
				return
			}
			key := change.Cluster + "/" + change.Feature
			if seen[key] >= change.Revision {
				return // published twice
			}
			seen[key] = change.Revision
			fmt.Printf("%s %s %s: %d -> %d\n",
				change.Cluster, change.Kind, change.Feature, change.Before, change.After)
		})
	}
}
