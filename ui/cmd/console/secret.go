package console

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/viper"

	"github.com/rdma-setup/rdma-setup/backends"
)

// A value is what one key of the settings has, and where from. Of two values the one with the higher rank counts.
type value struct {
	key, text, source string
	rank              int // 0: the default; 1: the settings file; 2: a variable of govc; 3: a variable of this program; 4: a flag
}

// finder returns the function that looks a setting up in flags, environment and settings file. A flag counts if it is given, also
// if it is empty; everything else only if it is not empty.
func finder(e *Env, cmd *cobra.Command, conf *viper.Viper, file string) func(key string) value {
	return func(key string) value {
		f := cmd.Flags().Lookup(key)
		if f != nil && f.Changed {
			return value{key, f.Value.String(), "--" + key, 4}
		}
		for _, name := range variables(key) {
			if text := e.Getenv(name); name != "" && text != "" {
				if strings.HasPrefix(name, "RDMA_SETUP_") {
					return value{key, text, name, 3}
				}
				return value{key, text, name, 2}
			}
		}
		if text := conf.GetString(key); text != "" {
			return value{key, text, key + " in " + file, 1}
		}
		if f != nil {
			return value{key, f.DefValue, "", 0}
		}
		return value{key: key}
	}
}

// A Secret says where a secret comes from: at most one of text, file, stdin and command is set. The zero value is not known.
type Secret struct {
	Text    string // the secret itself: of the environment, typed, or read
	file    string
	command string
	stdin   bool
	source  string
	rank    int   // of the source
	err     error // reading it failed: nothing else takes its place
}

// Known reports whether the secret comes from somewhere else than a prompt.
func (s Secret) Known() bool { return s.Text != "" || s.Given() }

// Given reports whether the secret has to be read from a file, stdin or a command.
func (s Secret) Given() bool { return s.file != "" || s.command != "" || s.stdin || s.err != nil }

// Asks reports whether reading the secret may need a person: a command may ask for the password of a safe.
func (s Secret) Asks() bool { return s.command != "" || s.stdin }

// secretOf chooses the source of a secret: the one with the highest rank. Two of the same rank are an error.
func secretOf(key string, look func(string) value) (Secret, error) {
	var best value
	for _, suffix := range []string{"", "-file", "-stdin", "-command"} {
		v := look(key + suffix)
		switch {
		case v.rank == 0, suffix == "-stdin" && v.text != "true":
		case v.rank == best.rank:
			return Secret{}, Usage("give one of them", "%s and %s both set the same password", best.source, v.source)
		case v.rank > best.rank:
			best = v
		}
	}
	s := Secret{source: best.source, rank: best.rank}
	switch strings.TrimPrefix(best.key, key) {
	case "":
		s.Text = best.text
	case "-file":
		s.file = best.text
	case "-stdin":
		s.stdin = best.text == "true"
	case "-command":
		s.command = best.text
	}
	if best.rank > 0 && !s.Known() {
		return s, Usage("name a source, or leave it out", "%s is empty", best.source)
	}
	return s, nil
}

// Read reads a secret that is given by a file, stdin or a command into Text, and does nothing for others.
func (s *Secret) Read(ctx context.Context, e *Env) error {
	var text string
	err := s.err
	switch {
	case err != nil:
	case s.file != "":
		text, err = firstLineOf(s.file, s.source)
	case s.stdin:
		text, err = firstLine(e.Stdin, "stdin")
	case s.command != "":
		text, err = outputOf(ctx, s.command, s.source)
		if ctx.Err() != nil {
			return err // of the caller, not of the command: the next one that needs the secret runs it again
		}
	default:
		return nil
	}
	if err == nil && text == "" {
		err = backends.Authf("", "The password must be on the first line.", "%s: the first line is empty", s.source)
	}
	*s = Secret{Text: text, source: s.source, err: err}
	return err
}

func firstLineOf(path, source string) (string, error) {
	b, err := backends.InputPassword.ReadFile(path)
	if backends.KindOf(err) == backends.KindUsage {
		return "", err
	}
	if err != nil {
		return "", Usage("Write the password on the first line.", "%s: password file: %v", source, err)
	}
	return firstLine(bytes.NewReader(b), path)
}

// firstLine reads a password from a stream that may stay open.
func firstLine(r io.Reader, name string) (string, error) {
	most := backends.InputPassword.Limit
	line, err := bufio.NewReader(io.LimitReader(r, most)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if int64(len(line)) == most {
		return "", Usage("Write the password on the first line.", "the first line of %s is longer than %s", name, backends.SizeText(most))
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// commandLimit is how long a command for a password may take: it may wait for a person who opens a safe.
const commandLimit = 2 * time.Minute

// outputOf runs a command without a shell and returns the first line of its output.
func outputOf(ctx context.Context, command, source string) (string, error) {
	words, err := split(command)
	if err != nil || len(words) == 0 {
		return "", Usage("Quote words with spaces, and write the command's path first.", "%s: %v", source, cmp.Or(err, errors.New("no command")))
	}
	limited, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	c := exec.CommandContext(limited, words[0], words[1:]...)
	out, errs := &beginning{most: int(backends.InputPassword.Limit)}, &beginning{most: 2000}
	c.Stdout, c.Stderr, c.WaitDelay = out, errs, time.Second
	err = c.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: %s was stopped: %w", source, words[0], ctx.Err())
	case limited.Err() != nil:
		err = fmt.Errorf("it took longer than %s", commandLimit)
	case errors.Is(err, exec.ErrWaitDelay): // it succeeded, and has started an agent that keeps its output open (gpg-agent)
		err = nil
	}
	if err != nil {
		kind := backends.KindAuth
		if c.Process == nil {
			kind = backends.KindUsage
		}
		said := backends.Clean(strings.TrimSpace(errs.String()))
		if said != "" {
			said = ": " + said
		}
		return "", backends.Errorf(kind, "", "Run the command yourself: it must print the password on its first line.", "%s: %s: %w%s", source,
			words[0], err, said)
	}
	return firstLine(out, "the output of "+words[0])
}

// beginning keeps the beginning of what is written.
type beginning struct {
	bytes.Buffer
	most int
}

func (l *beginning) Write(b []byte) (int, error) {
	l.Buffer.Write(b[:min(len(b), l.most-l.Len())])
	return len(b), nil
}

// split splits a command into words at spaces; quotes of both kinds keep a word together, and nothing is expanded.
func split(command string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range command {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	return words, nil
}

// Usable reports a file that the settings name and that cannot be read: another key, or the first line of a prompt, must not stand
// in for it.
// A known_hosts file that does not exist yet is an error only where nobody can accept a key for it.
func (s *Settings) Usable(e *Env) error {
	for _, of := range []struct {
		key  string
		in   backends.Input
		list []string
	}{
		{"ca-certs", backends.InputCA, filepath.SplitList(s.CACerts)}, {"ssh-key", backends.InputKey, []string{s.SSHKey}},
		{"known-hosts", backends.InputKnownHosts, []string{s.KnownHosts}}, {"esxi-passwords", backends.InputPassword, []string{s.ESXiPasswords}},
	} {
		for _, file := range of.list {
			err := mayRead(of.in, file)
			if of.key == "known-hosts" && errors.Is(err, fs.ErrNotExist) && e.Terminal() {
				continue
			}
			if backends.KindOf(err) == backends.KindUsage {
				return err // names the file, and what to do about it
			}
			if err != nil {
				return Usage("Name a file that exists and that you may read, or leave it out.", "%s: %w", cmp.Or(s.sources[of.key], "--"+of.key), err)
			}
		}
	}
	return nil
}

func mayRead(in backends.Input, file string) error {
	info, err := os.Stat(file)
	switch {
	case file == "":
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return &os.PathError{Op: "read", Path: file, Err: syscall.EISDIR}
	case !info.Mode().IsRegular(): // a pipe can be read once
		return nil
	}
	if err := in.Fits(file, info); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return f.Close()
}

// Secrets returns the secrets that are known, so that nothing writes them.
func (s *Settings) Secrets() []string {
	all := []string{s.Password.Text, s.ESXiPassword.Text, s.GuestPassword.Text, s.SudoPassword.Text}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}
