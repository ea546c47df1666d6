// Checks proofs of `compstream audit prove` and `audit consistency` by Go's own transparency log, which shares no line with ours.
// Standard input: a JSON array of {proof, keys}, each of which must have signed. Standard output: a JSON array of why each proves nothing, empty where it does.
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type proof struct {
	Kind       string      `json:"kind"`
	EventID    string      `json:"event_id"`
	Leaf       []byte      `json:"leaf"`
	LeafIndex  int64       `json:"leaf_index"`
	Path       []tlog.Hash `json:"path"`
	Checkpoint string      `json:"checkpoint"`
	From       string      `json:"from"`
	To         string      `json:"to"`
}

func main() {
	var asked []struct {
		Proof proof    `json:"proof"`
		Keys  []string `json:"keys"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatal(err)
	}
	verdicts := make([]string, len(asked))
	for i, one := range asked {
		if err := check(one.Proof, one.Keys); err != nil {
			verdicts[i] = err.Error()
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		log.Fatal(err)
	}
}

func check(p proof, keys []string) error {
	if p.Kind == "consistency" {
		from, err := open(p.From, keys)
		if err != nil {
			return err
		}
		to, err := open(p.To, keys)
		if err != nil {
			return err
		}
		return tlog.CheckTree(p.Path, to.N, to.Hash, from.N, from.Hash)
	}
	tree, err := open(p.Checkpoint, keys)
	if err != nil {
		return err
	}
	if fields := bytes.Split(p.Leaf, []byte{0}); len(fields) != 6 || string(fields[2]) != p.EventID {
		return errors.New("the leaf is of another event")
	}
	return tlog.CheckRecord(p.Path, tree.N, tree.Hash, p.LeafIndex, tlog.RecordHash(p.Leaf))
}

// open reads size and root by hand: tlog.ParseTree takes no origin but Go's own.
func open(text string, keys []string) (tlog.Tree, error) {
	var known []note.Verifier
	for _, key := range keys {
		verifier, err := newVerifier(key)
		if err != nil {
			return tlog.Tree{}, err
		}
		known = append(known, verifier)
	}
	opened, err := note.Open([]byte(text), note.VerifierList(known...))
	if err != nil {
		return tlog.Tree{}, err
	}
	if len(opened.Sigs) != len(keys) {
		return tlog.Tree{}, fmt.Errorf("signed by %d of %d keys", len(opened.Sigs), len(keys))
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 {
		return tlog.Tree{}, fmt.Errorf("a checkpoint of %d lines", len(lines)-1)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return tlog.Tree{}, err
	}
	root, err := tlog.ParseHash(lines[2])
	return tlog.Tree{N: size, Hash: root}, err
}

// witness checks signatures of type 4, which package note leaves to its callers: C2SP's tlog-cosignature.
type witness struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

func (w witness) Name() string    { return w.name }
func (w witness) KeyHash() uint32 { return w.hash }
func (w witness) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	head := fmt.Sprintf("cosignature/v1\ntime %d\n", binary.BigEndian.Uint64(signature))
	return ed25519.Verify(w.key, append([]byte(head), text...), signature[8:])
}

func newVerifier(key string) (note.Verifier, error) {
	parts := strings.SplitN(key, "+", 3)
	if len(parts) != 3 {
		return nil, errors.New("no verifier key")
	}
	raw, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || raw[0] != 4 {
		return note.NewVerifier(key)
	}
	sum := sha256.Sum256(append([]byte(parts[0]+"\n"), raw...))
	return witness{parts[0], binary.BigEndian.Uint32(sum[:]), raw[1:]}, nil
}
