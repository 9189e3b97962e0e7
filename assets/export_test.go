package assets

import "io/fs"

// FS returns everything that is built in.
func FS() fs.FS { return files }
