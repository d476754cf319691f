// Drives bbolt: makes a database, looks keys up, and scans all of it.
package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"

	bolt "go.etcd.io/bbolt"
)

const batch = 20_000

var bucket = []byte("records")

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: bbolt make|gets|scan DIRECTORY SEED RECORDS")
	}
	seed, err := strconv.ParseInt(os.Args[3], 10, 64)
	check(err)
	records, err := strconv.Atoi(os.Args[4])
	check(err)
	path := filepath.Join(os.Args[2], "bolt.db")
	generator := rand.New(rand.NewSource(seed))
	switch os.Args[1] {
	case "make":
		fill(path, generator, records)
	case "gets":
		look(path, func(b *bolt.Bucket) uint32 { return gets(b, generator, records) })
	case "scan":
		look(path, scan)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func key(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }

func fill(path string, generator *rand.Rand, records int) {
	db, err := bolt.Open(path, 0o644, &bolt.Options{NoSync: true})
	check(err)
	order := generator.Perm(records)
	value := make([]byte, 400)
	for first := 0; first < records; first += batch {
		check(db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(bucket)
			check(err)
			for _, i := range order[first:min(first+batch, records)] {
				generator.Read(value)
				check(b.Put(key(i), value))
			}
			return nil
		}))
	}
	check(db.Sync())
	check(db.Close())
}

func look(path string, at func(*bolt.Bucket) uint32) {
	db, err := bolt.Open(path, 0o444, &bolt.Options{ReadOnly: true})
	check(err)
	check(db.View(func(tx *bolt.Tx) error {
		fmt.Println(at(tx.Bucket(bucket)))
		return nil
	}))
}

func gets(b *bolt.Bucket, generator *rand.Rand, records int) uint32 {
	sum := uint32(0)
	for range 2000 {
		sum = crc32.Update(sum, crc32.IEEETable, b.Get(key(generator.Intn(records))))
	}
	return sum
}

func scan(b *bolt.Bucket) uint32 {
	sum := uint32(0)
	check(b.ForEach(func(_, value []byte) error {
		sum = crc32.Update(sum, crc32.IEEETable, value[:8])
		return nil
	}))
	return sum
}
