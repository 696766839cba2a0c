// Evaluates one PromQL expression over given series, by Prometheus' own engine.
//
// In, on stdin: JSON with `query`, `start`, `end` and `step` in seconds, and `series`, each with its labels, `metric`, and
// `values`, pairs of a time in seconds and a number; the number null is Prometheus' mark that the series has ended there.
// Out: the JSON of a range query's matrix, as the HTTP API of Prometheus answers.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

type question struct {
	Query            string
	Start, End, Step float64
	Series           []struct {
		Metric map[string]string
		Values [][2]*float64
	}
}

// sample is a number at a time in milliseconds.
type sample struct {
	time  int64
	value float64
}

func (s sample) T() int64                      { return s.time }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// seriesSet goes through series that are in memory.
type seriesSet struct {
	left    []storage.Series
	current storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.current, s.left = s.left[0], s.left[1:]
	return true
}
func (s *seriesSet) At() storage.Series                { return s.current }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

func matches(found labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(found.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

func (q question) all() ([]storage.Series, error) {
	all := make([]storage.Series, 0, len(q.Series))
	for _, given := range q.Series {
		samples := make([]chunks.Sample, 0, len(given.Values))
		for _, pair := range given.Values {
			if pair[0] == nil {
				return nil, fmt.Errorf("a value without a time in %v", given.Metric)
			}
			number := math.Float64frombits(value.StaleNaN)
			if pair[1] != nil {
				number = *pair[1]
			}
			samples = append(samples, sample{time: int64(*pair[0] * 1000), value: number})
		}
		all = append(all, storage.NewListSeries(labels.FromMap(given.Metric), samples))
	}
	sort.Slice(all, func(i, j int) bool { return labels.Compare(all[i].Labels(), all[j].Labels()) < 0 })
	return all, nil
}

func seconds(amount float64) time.Time { return time.UnixMilli(int64(amount * 1000)) }

func answer(input *os.File, output *os.File) error {
	var asked question
	if err := json.NewDecoder(input).Decode(&asked); err != nil {
		return err
	}
	all, err := asked.all()
	if err != nil {
		return err
	}
	selected := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &seriesSet{}
		for _, series := range all {
			if matches(series.Labels(), matchers) {
				found.left = append(found.left, series)
			}
		}
		return found
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute})
	step := time.Duration(asked.Step * float64(time.Second))
	queryable := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: selected}}
	query, err := engine.NewRangeQuery(
		context.Background(), queryable, nil, asked.Query, seconds(asked.Start), seconds(asked.End), step)
	if err != nil {
		return err
	}
	defer query.Close()
	result := query.Exec(context.Background())
	if result.Err != nil {
		return result.Err
	}
	matrix, err := result.Matrix()
	if err != nil {
		return err
	}
	return json.NewEncoder(output).Encode(matrix)
}

func main() {
	if err := answer(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
