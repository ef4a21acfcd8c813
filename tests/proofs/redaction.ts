import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { families } from '../../packages/redact/src/families.ts'
import { createRedactor } from '../../packages/redact/src/redactor.ts'
import { pick, plant, secretShapes } from '../../packages/redact/src/testing/planted-secrets.ts'
import type { TextsToMeasure } from './redaction/measured-texts.ts'
import { cpuMs, findSlowestTexts, repeated } from './redaction/slowest-text.ts'

export const name = 'redaction'
export const claim =
  'Keys of more than 120 kinds are redacted before storage, even when split across chunks; code stays unchanged.'
export const sizes = {
  ci: { bytesOfCode: 20_000_000, transcripts: 3000 },
  full: { bytesOfCode: 100_000_000, transcripts: 10_000 },
}

/** As in use: the keys of the providers are known by their values, too. */
const redactor = createRedactor({
  secrets: { SOME_API_KEY: 'a-key-that-is-known-1', OTHER_API_KEY: 'a-key-that-is-known-2' },
})

const targets = { recall: 0.99, changedLines: 0.001, slowerThanCharacters: 25, slowestTimesOrdinary: 20 }

/** Secrets of every family are planted in transcripts and must be gone; ordinary code must stay as it is; and it must not take long. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { size, say } = context
  const code = readCode(sizes[size].bytesOfCode)
  const found = plantTranscripts(sizes[size].transcripts, code, context)
  const changed = changedLines(code, say)
  const speed = measureSpeed(code.slice(0, 4_000).map(({ text }) => text))
  const timesOrdinary = await slowestMegabyte(code, context)
  const ok =
    found.recall >= targets.recall &&
    found.lowest.recall >= 0.95 &&
    found.differing === 0 &&
    changed.share <= targets.changedLines &&
    speed.slowerThanCharacters <= targets.slowerThanCharacters &&
    timesOrdinary <= targets.slowestTimesOrdinary
  return {
    ok,
    figures: {
      families: new Set(families.map((family) => family.name)).size,
      planted: found.planted,
      recall: Number(found.recall.toFixed(5)),
      lowestFamily: `${found.lowest.family} ${found.lowest.recall.toFixed(3)}`,
      differingStreams: found.differing,
      lines: changed.lines,
      linesChanged: changed.count,
      changedPercent: Number((changed.share * 100).toFixed(4)),
      megabytesPerSecond: Math.round(speed.megabytesPerSecond),
      slowerThanCharacters: Number(speed.slowerThanCharacters.toFixed(1)),
      slowerThanIndexOf: Math.round(speed.slowerThanIndexOf),
      slowestTimesOrdinary: Number(timesOrdinary.toFixed(1)),
    },
  }
}

interface CodeFile {
  path: string
  text: string
}

function readCode(limit: number): CodeFile[] {
  const seen = new Set<string>()
  const files: CodeFile[] = []
  let size = 0
  for (const path of globSync(['packages/*/src/**/*.ts', 'node_modules/**/*.{js,mjs,cjs,ts,md}'])) {
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch {
      continue // a folder called something.js
    }
    if (seen.has(text)) continue
    seen.add(text)
    files.push({ path, text })
    size += text.length
    if (size >= limit) break
  }
  return files
}

interface Found {
  planted: number
  recall: number
  lowest: { family: string; recall: number }
  /** Transcripts that came out otherwise when they came in pieces. */
  differing: number
}

/** Each transcript has three secrets between lines of code, and comes as a whole, in pieces and as content of a message. */
function plantTranscripts(count: number, code: readonly CodeFile[], { random, say }: FigureContext): Found {
  const tally = new Map<string, { planted: number; found: number }>()
  let differing = 0
  for (let number = 0; number < count; number++) {
    const planted = [0, 1, 2].map((place) => plant(secretShapes[(number * 3 + place) % secretShapes.length]!, random))
    const lines = pick(code, random).text.slice(0, 2000).split('\n')
    const text = planted.flatMap((each, place) => [...lines.slice(place * 5, place * 5 + 5), each.text]).join('\n')
    const whole = redactor.text(text)
    if (inPieces(text, random) !== whole) {
      differing++
      say(`DIFFERS ${JSON.stringify(text)}`)
    }
    const message = { type: 'tool_result', toolResult: { toolUseId: 'call_1', content: text } }
    const stored = redactor.json(message).toolResult.content
    for (const { family, secret } of planted) {
      const entry = tally.get(family) ?? { planted: 0, found: 0 }
      tally.set(family, entry)
      entry.planted++
      if (!whole.includes(secret) && !stored.includes(secret)) entry.found++
    }
  }
  const byFamily = [...tally].map(([family, { planted, found }]) => ({
    family,
    planted,
    found,
    recall: found / planted,
  }))
  byFamily.sort((left, right) => left.recall - right.recall)
  for (const { family, planted, found } of byFamily.filter(({ recall }) => recall < 1)) {
    say(`${family}: ${found} of ${planted}`)
  }
  const sum = (field: 'planted' | 'found'): number => byFamily.reduce((total, each) => total + each[field], 0)
  say(`${sum('found')} of ${sum('planted')} secrets of ${byFamily.length} families found in ${count} transcripts`)
  return { planted: sum('planted'), recall: sum('found') / sum('planted'), lowest: byFamily[0]!, differing }
}

function inPieces(text: string, random: () => number): string {
  const stream = redactor.stream()
  const longest = pick([4, 40, 400], random)
  let output = ''
  for (let start = 0; start < text.length;) {
    const length = 1 + Math.floor(random() * longest)
    output += stream.write(text.slice(start, start + length))
    start += length
  }
  return output + stream.end()
}

function changedLines(
  code: readonly CodeFile[],
  say: FigureContext['say'],
): { lines: number; count: number; share: number } {
  let lines = 0
  let count = 0
  for (const { path, text } of code) {
    const before = text.split('\n')
    lines += before.length
    const redacted = redactor.text(text)
    if (redacted === text) continue
    const after = redacted.split('\n')
    for (const [index, line] of before.entries()) {
      if (line === after[index]) continue
      count++
      const marker = /\[redacted: [\w-]+\]/.exec(after[index] ?? '')
      const place = Math.max(0, (marker?.index ?? 0) - 40)
      if (count <= 20) say(`changed: ${path}:${index + 1}: ${line.slice(place, place + 100).trim()} (${marker?.[0]})`)
    }
  }
  say(`${count} of ${lines} lines of code changed`)
  return { lines, count, share: count / lines }
}

interface Speed {
  megabytesPerSecond: number
  /** Than a loop that only looks at every character. */
  slowerThanCharacters: number
  slowerThanIndexOf: number
}

/** All three over the same text in the same run, so that the ratio holds on any machine. */
function measureSpeed(texts: readonly string[]): Speed {
  const size = texts.reduce((sum, text) => sum + text.length, 0)
  const time = (work: (text: string) => unknown): number => {
    const once = (): number => cpuMs(() => texts.forEach((text) => work(text)))
    return Math.min(once(), once(), once())
  }
  const redactingMs = time((text) => redactor.text(text))
  const charactersMs = time(sumOfCharacters)
  const indexOfMs = time((text) => text.indexOf('\u0001 is nowhere'))
  return {
    megabytesPerSecond: size / 1000 / redactingMs,
    slowerThanCharacters: redactingMs / charactersMs,
    slowerThanIndexOf: redactingMs / Math.max(indexOfMs, 0.1),
  }
}

function sumOfCharacters(text: string): number {
  let sum = 0
  for (let index = 0; index < text.length; index++) sum = (sum * 31 + text.charCodeAt(index)) | 0
  return sum
}

/**
 * How many times as long as a megabyte of ordinary code the slowest megabyte takes that a search finds. Both are measured
 * side by side, and the median of these ratios counts, so that a busy machine does not fail it.
 */
async function slowestMegabyte(code: readonly CodeFile[], { size, random, seed, say }: FigureContext): Promise<number> {
  const steps = size === 'ci' ? { stepsPerFamily: 10, finalSteps: 60 } : { stepsPerFamily: 100, finalSteps: 1000 }
  const slowest = findSlowestTexts({ redactor, random, ...steps })
  const ordinary = code
    .map(({ text }) => text)
    .join('\n')
    .slice(0, 1_000_000)
  const ratios = await measureTexts({
    policy: redactor.policy,
    ordinary,
    texts: slowest.map(({ pieces }) => repeated(pieces, 1_000_000)),
    limit: targets.slowestTimesOrdinary,
  })
  const times = slowest.map((text, index) => ({ ...text, ratio: ratios[index] ?? Infinity }))
  times.sort((left, right) => right.ratio - left.ratio)
  for (const { family, pieces, ratio } of times.slice(0, 3)) {
    const shown = JSON.stringify(
      pieces.map((piece) => (piece.length > 300 ? `${piece.slice(0, 300)}… ${piece.length}` : piece)),
    )
    say(`${ratio.toFixed(1)} times ordinary text: ${family}, ${shown} repeated (seed ${seed})`)
  }
  return times[0]?.ratio ?? 0
}

async function measureTexts(workerData: TextsToMeasure): Promise<number[]> {
  const worker = new Worker(new URL('redaction/measured-texts.ts', import.meta.url), { workerData })
  const [ratios] = (await once(worker, 'message')) as [number[]]
  return ratios
}
