import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median, percentile } from '../scripts/figure/percentile.ts'
import type { Asked } from './search/build-and-ask.ts'
import { writeManySessions } from './session/generate-many.ts'

export const name = 'search'
export const claim =
  'Search covers all sessions and finds words, parts of words, and Chinese, Japanese and Korean text.'
export const sizes = { ci: { sessions: 5000 }, full: { sessions: 10_000 } }

/** Words, beginnings and parts of words in many sessions, found without reading them. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const folder = await context.temporaryFolder()
  // Every question looks at every log, and there are a thousand: half as many sessions fit the budget.
  const { sessions } = sizes[context.size]
  const amounts = { sessions, entries: 20, wordsPerEntry: 40, random: context.random }
  const { textBytes, words } = writeManySessions(folder, amounts)
  context.say(`${sessions} sessions of 20 entries, ${(textBytes / 1e6).toFixed(1)} MB of text`)
  const questions = chooseQuestions(words, context.random)
  const asked = await askInFreshProcess(folder, questions)
  const { build } = asked
  const ratio = build.indexBytes / textBytes
  context.say(
    `index: built in ${(build.ms / 1000).toFixed(1)} s, ${(build.indexBytes / 1e6).toFixed(1)} MB, ${ratio.toFixed(2)} × the text; ` +
      `loop delay p99 ${build.delayP99Ms.toFixed(1)} ms, at most ${build.delayMaxMs.toFixed(1)} ms; ` +
      `p99 of a bare loop at the same time ${build.bareDelayP99Ms.toFixed(1)} ms`,
  )
  const found = Object.entries(questions).map(([kind, texts]) => {
    const answers = asked.answers.filter((answer) => answer.kind === kind)
    const missing = answers.filter(({ hits }) => hits === 0).map(({ text }) => text)
    context.say(
      `${kind}: ${answers.length} questions, median ${median(answers.map(({ ms }) => ms)).toFixed(1)} ms` +
        (missing.length > 0 ? `, NOT FOUND: ${missing.slice(0, 5).join(', ')}` : `, all ${texts.length} found`),
    )
    return missing.length === 0
  })
  const counted = asked.answers.filter(({ kind }) => kind === 'words' || kind === 'beginnings')
  const timed = counted.map(({ ms }) => ms)
  const p99 = percentile(timed, 0.99)
  context.say(
    `words and beginnings: p50 ${median(timed).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms of ${timed.length}; ` +
      `each begins with a look at every log (${asked.lookMs.toFixed(1)} ms bare)`,
  )
  const again = counted.filter(({ firstMs, ms }) => firstMs !== ms)
  if (again.length > 0) {
    const first = percentile(
      counted.map(({ firstMs }) => firstMs),
      0.99,
    )
    context.say(`${again.length} of them were quicker when asked again; p99 of the first tries ${first.toFixed(1)} ms`)
  }
  context.say(`reading every log for one word instead: ${asked.scanMs.toFixed(0)} ms`)
  const figures = {
    sessions,
    search_p99_ms: round(p99),
    search_p50_ms: round(median(timed)),
    index_to_text_ratio: round(ratio),
    build_s: round(build.ms / 1000),
    build_delay_p99_ms: round(build.delayP99Ms),
    build_delay_ratio: round(build.delayP99Ms / build.bareDelayP99Ms),
    build_delay_max_ms: round(build.delayMaxMs),
    all_found: found.every(Boolean) ? 1 : 0,
    to_scan_speedup: round(asked.scanMs / median(timed)),
  }
  const ok = p99 <= 100 && ratio <= 0.8 && build.delayMaxMs <= 50 && found.every(Boolean)
  return { ok, figures }
}

type Questions = Record<'words' | 'beginnings' | 'parts' | 'asian', string[]>

/** Words of every frequency, and what can be made of them. */
function chooseQuestions(words: readonly string[], random: () => number): Questions {
  const pick = (): string => words[Math.floor(1000 ** random() * 10) - 1] as string
  const many = (count: number, make: () => string): string[] => Array.from({ length: count }, make)
  return {
    words: many(500, () => (random() < 0.2 ? `${words[0]} ${words[Math.floor(random() * 50)]}` : pick())),
    beginnings: many(500, () => pick().slice(0, 2 + Math.floor(random() * 4))),
    parts: many(50, () => {
      const word = words.slice(0, 2000).filter((each) => each.length > 6)[Math.floor(random() * 500)] as string
      return word.slice(2, 6)
    }),
    asian: ['検索', '索引を作る', '引', '搜索功能', '更快的', '검색', '데이터', '개선한다', 'größenänd', 'naive CAFÉ'],
  }
}

async function askInFreshProcess(folder: string, questions: Questions): Promise<Asked> {
  const program = join(import.meta.dirname, 'search/build-and-ask.ts')
  const file = join(folder, '.questions.json')
  writeFileSync(file, JSON.stringify(questions))
  const options = { maxBuffer: 64 * 1024 * 1024 }
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, program, folder, file], options)
  return JSON.parse(stdout) as Asked
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
