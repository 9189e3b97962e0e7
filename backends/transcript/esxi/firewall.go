package esxi

import (
	"regexp"
	"strings"

	"github.com/rdma-setup/rdma-setup/backends/transcript/scan"
)

// Rulesets is the table of "esxcli network firewall ruleset list".
type Rulesets struct {
	scan.Envelope
	Rulesets []Ruleset `json:"rulesets"`
}

// Ruleset is a named group of firewall rules.
type Ruleset struct {
	Name    string `json:"name"`
	Enabled *bool  `json:"enabled"`
}

// The start of a row in a text without line breaks.
var (
	rulesetStart = regexp.MustCompile(`\b[\w.-]+\s+(?:true|false)(?:\s+(?:true|false))*`)
	ruleStart    = regexp.MustCompile(`\b[\w.-]+\s+(?:Inbound|Outbound)\s`)
)

// RulesetList reads "esxcli network firewall ruleset list". ESXi 8 has more columns than Enabled; they are not read.
func RulesetList(text string) Rulesets {
	r := Rulesets{Rulesets: []Ruleset{}}
	r.Envelope, text = scan.Begin("esxcli_network_firewall_ruleset_list", text)
	text = scan.Unfold(text, rulesetStart)
	var header *scan.Header
	for line := range scan.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Name") && strings.Contains(line, "Enabled") {
			header = scan.NewHeader(line, 2, "Name", "Enabled")
			continue
		}
		words := strings.Fields(line)
		if len(words) < 2 || !truths(words[1:]) {
			continue
		}
		s := Ruleset{Name: words[0], Enabled: scan.Bool(words[1])}
		if header != nil {
			if c := header.Words(line); c.At("Name") == s.Name && scan.Bool(c.At("Enabled")) != nil {
				s.Enabled = scan.Bool(c.At("Enabled"))
			}
		}
		r.Rulesets = append(r.Rulesets, s)
	}
	r.NotUnderstood(header != nil || len(r.Rulesets) > 0, text)
	return r
}

func truths(words []string) bool {
	for _, w := range words {
		if !strings.EqualFold(w, "true") && !strings.EqualFold(w, "false") {
			return false
		}
	}
	return true
}

// Rules is the table of "esxcli network firewall ruleset rule list".
type Rules struct {
	scan.Envelope
	Rules []Rule `json:"rules"`
}

// Rule opens a range of ports.
type Rule struct {
	Ruleset   string  `json:"ruleset"`
	Direction *string `json:"direction"` // Inbound, Outbound
	Protocol  *string `json:"protocol"`  // TCP, UDP, ...
	PortType  *string `json:"port_type"` // Src, Dst
	PortBegin *int64  `json:"port_begin"`
	PortEnd   *int64  `json:"port_end"`
}

// RuleList reads "esxcli network firewall ruleset rule list".
func RuleList(text string) Rules {
	r := Rules{Rules: []Rule{}}
	r.Envelope, text = scan.Begin("esxcli_network_firewall_ruleset_rule_list", text)
	text = scan.Unfold(text, ruleStart)
	var header *scan.Header
	for line := range scan.Lines(text) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		if len(words) > 16 || len(words) < 2 {
			continue
		}
		if words[0] == "Ruleset" && strings.Contains(line, "Direction") {
			header = scan.NewHeader(line, 2, "Ruleset", "Direction", "Protocol", "Port Type", "Port Begin", "Port End")
			continue
		}
		if rule, ok := rule(words); ok {
			if header != nil && len(words) != header.Width() {
				rule.place(header.Row(line))
			}
			r.Rules = append(r.Rules, rule)
		}
	}
	r.NotUnderstood(header != nil || len(r.Rules) > 0, text)
	return r
}

// rule reads the words around the direction.
func rule(words []string) (Rule, bool) {
	at := 1
	for at < len(words) && !strings.EqualFold(words[at], "Inbound") && !strings.EqualFold(words[at], "Outbound") {
		at++
	}
	if at == len(words) {
		return Rule{}, false
	}
	r := Rule{Ruleset: strings.Join(words[:at], " "), Direction: &words[at]}
	ports := 0
	for _, w := range words[at+1:] {
		n := scan.Int(w)
		switch {
		case strings.EqualFold(w, "Src") || strings.EqualFold(w, "Dst"):
			r.PortType = scan.Str(w)
		case n == nil && r.Protocol == nil && r.PortType == nil:
			r.Protocol = scan.Str(w)
		case n != nil && ports == 0:
			r.PortBegin, ports = n, 1
		case n != nil && ports == 1:
			r.PortEnd, ports = n, 2
		}
	}
	return r, true
}

// place reads a row with empty cells by the columns of the heading.
func (r *Rule) place(c scan.Row) {
	if c.At("Ruleset") != r.Ruleset {
		return
	}
	r.Protocol, r.PortType = scan.Str(c.At("Protocol")), scan.Str(c.At("Port Type"))
	r.PortBegin, r.PortEnd = scan.Int(c.At("Port Begin")), scan.Int(c.At("Port End"))
}
