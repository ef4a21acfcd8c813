import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { checksum } from '@tapetree/session/format'

interface Harmed {
  file: string
  /** The same file as it was before the sessions went on. */
  older: string
  /** The same file as it would be if they had gone on further. */
  newer: string
  others: readonly string[]
  random: () => number
}

interface Way {
  title: string
  /** Changes some bytes and leaves the file one of its kind. */
  isSubtle?: true
  harm: (harmed: Harmed) => void
}

/** What may happen to a file that somebody else can reach. */
export const ways: readonly Way[] = [
  { title: 'deleted', harm: ({ file }) => rmSync(file) },
  { title: 'emptied', harm: ({ file }) => truncateSync(file, 0) },
  { title: 'zeroed', harm: ({ file }) => edit(file, (bytes) => bytes.fill(0)) },
  { title: 'first half zeroed', harm: ({ file }) => edit(file, (bytes) => bytes.fill(0, 0, bytes.length >> 1)) },
  { title: 'last half zeroed', harm: ({ file }) => edit(file, (bytes) => bytes.fill(0, bytes.length >> 1)) },
  { title: 'cut to a byte', harm: ({ file }) => truncateSync(file, 1) },
  { title: 'cut to a half', harm: ({ file }) => truncateSync(file, Math.floor(sizeOf(file) / 2)) },
  { title: 'cut by a byte', harm: ({ file }) => truncateSync(file, sizeOf(file) - 1) },
  { title: 'older', harm: ({ file, older }) => copyFileSync(older, file) },
  { title: 'newer', harm: ({ file, newer }) => copyFileSync(newer, file) },
  { title: 'garbage', harm: ({ file, random }) => edit(file, (bytes) => bytes.map(() => Math.floor(random() * 256))) },
  { title: 'text', harm: ({ file }) => writeFileSync(file, 'not what it should be\n') },
  { title: 'valid JSON of another kind', harm: ({ file }) => writeFileSync(file, '{"messages":[],"version":1}\n') },
  { title: 'null', harm: ({ file }) => writeFileSync(file, 'null\n') },
  { title: 'longer', harm: ({ file }) => writeFileSync(file, `${'x'.repeat(100_000)}\n`, { flag: 'a' }) },
  { title: 'doubled', harm: ({ file }) => edit(file, (bytes) => Buffer.concat([bytes, bytes])) },
  { title: 'one bit flipped', isSubtle: true, harm: ({ file, random }) => flip(file, random, 1) },
  { title: 'a hundred bits flipped', isSubtle: true, harm: ({ file, random }) => flip(file, random, 100) },
  { title: 'edited by hand', isSubtle: true, harm: ({ file }) => replaceText(file, 'waits', 'edits') },
  { title: 'a number changed', isSubtle: true, harm: ({ file }) => replaceText(file, '2', '3') },
  { title: 'a newer version', isSubtle: true, harm: ({ file }) => replaceText(file, '"version":1', '"version":9') },
  { title: "another session's", harm: ({ file, others, random }) => copyFileSync(pick(others, random), file) },
  { title: 'nonsense with a right checksum', harm: ({ file }) => writeFileSync(file, sealedNonsense) },
  { title: 'a folder', harm: ({ file }) => inPlaceOf(file, () => mkdirSync(file)) },
  {
    title: 'a full folder',
    harm: ({ file }) => inPlaceOf(file, () => mkdirSync(`${file}/inside`, { recursive: true })),
  },
  { title: 'a pipe', harm: ({ file }) => inPlaceOf(file, () => execFileSync('mkfifo', [file])) },
  { title: 'a link to nowhere', harm: ({ file }) => inPlaceOf(file, () => symlinkSync('/nowhere/at/all', file)) },
]

const nonsense = '{"version":1,"last":{"seq":1,"at":0,"size":1,"crc":""},"nodes":[[]],"labels":5}'
const sealedNonsense = `${checksum(nonsense)}\n${nonsense}\n`

function sizeOf(file: string): number {
  return readFileSync(file).length
}

function edit(file: string, change: (bytes: Buffer) => Uint8Array): void {
  writeFileSync(file, change(readFileSync(file)))
}

function flip(file: string, random: () => number, count: number): void {
  edit(file, (bytes) => {
    for (let index = 0; index < count; index++) {
      const at = Math.floor(random() * bytes.length)
      bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8))
    }
    return bytes
  })
}

function replaceText(file: string, from: string, to: string): void {
  edit(file, (bytes) => Buffer.from(bytes.toString('latin1').replaceAll(from, to), 'latin1'))
}

function pick<T>(items: readonly T[], random: () => number): T {
  return items[Math.floor(random() * items.length)] as T
}

function inPlaceOf(file: string, put: () => void): void {
  rmSync(file, { recursive: true, force: true })
  put()
}
