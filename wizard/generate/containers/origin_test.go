package containers_test

import (
	"time"

	"github.com/rdma-setup/rdma-setup/wizard/generate"
)

var origin = generate.Origin{Tool: "rdma-setup 1.0", What: "generate x", From: []string{"answers.yaml"},
	Made: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
