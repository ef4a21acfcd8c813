import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sealLine, type DiskLine } from '@tapetree/session/format'

export interface ManySessions {
  ids: string[]
  /** Bytes of what was said, without the lines around it. */
  textBytes: number
  logBytes: number
  /** The vocabulary, common words first. */
  words: string[]
}

/** Writes many small sessions with words as unevenly common as those of a language. No sync: they are only read. */
export function writeManySessions(
  folder: string,
  options: { sessions: number; entries: number; wordsPerEntry: number; random: () => number },
): ManySessions {
  const { sessions, entries, wordsPerEntry, random } = options
  const words = makeVocabulary(random)
  const many: ManySessions = { ids: [], textBytes: 0, logBytes: 0, words }
  for (let index = 0; index < sessions; index++) {
    const id = `019a0000-${index.toString(16).padStart(8, '0')}`
    const startMs = firstMs + index * 300_000
    const lines: string[] = []
    const add = (line: DiskLine): void => {
      const timestamp = new Date(startMs + lines.length * 10_000).toISOString()
      lines.push(sealLine({ ...line, timestamp }, lines.length + 1).text)
    }
    add({ type: 'session', id, version: 1, cwd: `/home/someone/project${index % 40}` })
    add({ type: 'writer', id: `w${index}`, writer: { term: 1, host: 'h', process: '1', format: 1 } })
    for (let entry = 0; entry < entries; entry++) {
      const said = entry === 3 && index % 50 === 0 ? foreignText : sentence(words, wordsPerEntry, random)
      many.textBytes += Buffer.byteLength(said)
      const content = [{ type: 'text', text: { content: said } }]
      const parent = entry === 0 ? null : `e${entry - 1}`
      const role = entry % 2 === 0 ? 'user' : 'assistant'
      add({ type: 'message', id: `e${entry}`, parent_id: parent, message: { role, content } })
    }
    mkdirSync(join(folder, id), { recursive: true, mode: 0o700 })
    const log = `${lines.join('\n')}\n`
    writeFileSync(join(folder, id, 'events.jsonl'), log, { mode: 0o600 })
    many.ids.push(id)
    many.logBytes += Buffer.byteLength(log)
  }
  return many
}

/** In a few of the sessions. */
const foreignText =
  '全文検索の索引を作る。我们需要更快的搜索功能。데이터베이스 검색 기능을 개선한다. Größenänderung naïve café.'

/** Long enough ago for the last of 100,000 sessions, five minutes apart. */
const firstMs = Date.UTC(2025, 0, 1)
const vocabularySize = 30_000
const syllables = 'ka lo mi ter san vel po re du shi an ing st or qu ex bra fen gol hum'.split(' ')

function makeVocabulary(random: () => number): string[] {
  const words = new Set<string>()
  const pick = (): string => syllables[Math.floor(random() * syllables.length)] as string
  while (words.size < vocabularySize) {
    const length = 1 + Math.floor(random() * 4)
    const word = Array.from({ length }, pick).join('')
    words.add(words.has(word) ? `${word}${words.size.toString(36)}` : word)
  }
  return [...words]
}

/** The word of rank n is about as common as 1/n; now and then there is one that nobody else says, as ids and numbers are. */
function sentence(words: readonly string[], length: number, random: () => number): string {
  const count = Math.ceil(length * (0.4 + 1.2 * random()))
  const said = Array.from({ length: count }, () => words[Math.floor(words.length ** random()) - 1] as string)
  if (random() < 0.2) said.push(`id${Math.floor(random() * 1e9).toString(36)}`)
  return said.join(' ')
}
