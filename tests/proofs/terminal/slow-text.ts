import { codeLanguages } from '@tapetree/session/screen'
import { Highlighter } from '../../../packages/cli/src/tui/markdown/highlight.ts'
import { markdownLines } from '../../../packages/cli/src/tui/markdown/markdown-lines.ts'
import { shownText } from '../../../packages/cli/src/tui/markdown/shown-text.ts'
import { StreamingMarkdown } from '../../../packages/cli/src/tui/markdown/streaming-markdown.ts'
import { themeFor } from '../../../packages/cli/src/tui/theme.ts'
import { maxTries } from '../../../scripts/figure/tries.ts'

export interface SlowTextOptions {
  random: () => number
  /** How many texts are tried for each language and for Markdown itself. */
  tries: number
  say: (line: string) => void
}

export interface SlowText {
  tried: number
  /** How many times as long as ordinary text of the same size the slowest took. */
  slowest: number
  what: string
  problems: string[]
}

/** A hostile text may take this many times as long as ordinary text of the same size. */
const allowed = 20
const sizes = [5000, 20_000, 50_000]
const width = 100
const pieces = 40
const theme = themeFor({ theme: 'dark', color: true })

/** What the grammars and the parser of Markdown give a meaning to. The search joins them, repeats them and keeps what is slowest. */
const atoms = [
  ...'_*`~"\'/\\(){}[]<>|#$@:;,.=+-!?&%^0aA \t\n',
  ...[
    'a ',
    'a(',
    '<a ',
    '<a b="',
    'a<',
    '/*',
    '*/',
    '//',
    '${',
    '<!--',
    '`${',
    'a::',
    'a.',
    'a,',
    'a=',
    'r"',
    '0x',
    '0.',
  ],
  ...['function ', 'class a ', 'if (', '(a) => ', '(a, ', 'template<', 'public ', 'return ', 'def a', 'let a: ', '@a('],
  ...[
    '- ',
    '> ',
    '1. ',
    'a: ',
    '| a ',
    '|-',
    '[a](',
    '[a]: ',
    '![',
    '**a',
    '__',
    '```',
    '<<<a\n',
    '=begin\n',
    'http://',
    '&amp;',
  ],
  ...['\n\n', '\n  ', '\n- ', '\n> ', '\n\t', '- [ ] ', '* * ', '\\\n', '  \n', '\u0301', '世', '👩‍👩‍👧'],
] as const

/** Looks for text that freezes the screen: hostile code in every language, and hostile Markdown, whole and as it streams in. */
export async function findSlowText({ random, tries, say }: SlowTextOptions): Promise<SlowText> {
  const found: SlowText = { tried: 0, slowest: 0, what: '', problems: [] }
  const highlighter = await loadedHighlighter()
  const ordinary = ordinaryTimes(highlighter)
  for (const language of [undefined, ...codeLanguages]) {
    let worst: { recipe: Recipe; ratio: number } | undefined
    for (let index = 0; index < tries; index++) {
      const size = sizes[Math.floor(random() * sizes.length)] ?? 0
      const recipe = worst && random() < 0.5 ? mutated(worst.recipe, random) : randomRecipe(random)
      const way = random() < 0.2 ? 'streamed' : 'whole'
      const ordinaryMs = ordinary.get(`${way} ${language ? 'code' : 'text'} ${size}`) ?? 1
      const text = fenced(textOf(recipe, size), language)
      let ratio = timeOf(way, text, highlighter) / ordinaryMs
      // Again, if it seems slow, with ordinary text right before it: the machine may have been slower for a while.
      for (let again = 0; again < maxTries && ratio > allowed; again++) {
        const besideMs = timeOf(way, ordinaryText(language, size), highlighter)
        ratio = Math.min(ratio, timeOf(way, text, highlighter) / besideMs)
      }
      found.tried++
      if (!worst || ratio > worst.ratio) worst = { recipe, ratio }
      const what = `${size} characters of ${JSON.stringify(recipe)} as ${language ?? 'Markdown'}, ${way}`
      if (ratio > found.slowest) Object.assign(found, { slowest: ratio, what })
      if (ratio <= allowed) continue
      found.problems.push(`slow text: ${what} took ${ratio.toFixed(1)} times as long as ordinary text`)
    }
  }
  say(
    `${found.tried} hostile texts, the slowest ${found.slowest.toFixed(1)} times as slow as ordinary text: ${found.what}`,
  )
  return found
}

async function loadedHighlighter(): Promise<Highlighter> {
  let onLoad: () => void = () => undefined
  const highlighter = new Highlighter(() => onLoad())
  for (const language of codeLanguages) {
    const loaded = new Promise<void>((resolve) => (onLoad = resolve))
    if (highlighter.highlight('x', language, theme) === undefined) await loaded
    // A parser that was just loaded is slow by itself.
    for (let call = 0; call < 30; call++) highlighter.highlight(ordinaryCode, language, theme)
  }
  return highlighter
}

/** Put one behind the other and repeated, with a line end after so many repetitions. */
interface Recipe {
  start: string
  unit: string[]
  unitsPerLine: number
}

function randomRecipe(random: () => number): Recipe {
  const unit = Array.from({ length: 1 + Math.floor(random() ** 2 * 4) }, () => anAtom(random))
  return {
    start: random() < 0.5 ? '' : anAtom(random),
    unit,
    unitsPerLine: [Infinity, Infinity, 1, 8, 60, 400][Math.floor(random() * 6)] ?? 1,
  }
}

function mutated({ start, unit, unitsPerLine }: Recipe, random: () => number): Recipe {
  const place = Math.floor(random() * unit.length)
  switch (Math.floor(random() * 4)) {
    case 0:
      return { start, unitsPerLine, unit: unit.toSpliced(place, 1, anAtom(random)) }
    case 1:
      return { start, unitsPerLine, unit: unit.toSpliced(place, 0, anAtom(random)) }
    case 2:
      return { start: anAtom(random), unit, unitsPerLine }
    default:
      return { start, unit, unitsPerLine: randomRecipe(random).unitsPerLine }
  }
}

function anAtom(random: () => number): string {
  return atoms[Math.floor(random() * atoms.length)] ?? '_'
}

function textOf({ start, unit, unitsPerLine }: Recipe, size: number): string {
  const once = unit.join('')
  const line = unitsPerLine === Infinity ? once : `${once.repeat(unitsPerLine)}\n`
  return (start + repeated(line, size)).slice(0, size)
}

function fenced(text: string, language: string | undefined): string {
  return language === undefined ? text : `\`\`\`\`\`${language}\n${text}\n\`\`\`\`\`\n`
}

/** How long an ordinary message takes: prose with a list and a table, or a block of code. */
function ordinaryTimes(highlighter: Highlighter): Map<string, number> {
  const times = new Map<string, number>()
  for (const size of sizes) {
    for (const [kind, language] of [
      ['text', undefined],
      ['code', 'typescript'],
    ] as const) {
      const text = ordinaryText(language, size)
      for (const way of ['whole', 'streamed'] as const) {
        timeOf(way, text, highlighter)
        const runs = Array.from({ length: 10 }, () => timeOf(way, text, highlighter))
        times.set(`${way} ${kind} ${size}`, runs.reduce((sum, ms) => sum + ms, 0) / runs.length)
      }
    }
  }
  return times
}

function ordinaryText(language: string | undefined, size: number): string {
  return language === undefined ? repeated(ordinaryMarkdown, size) : fenced(repeated(ordinaryCode, size), 'typescript')
}

function repeated(text: string, size: number): string {
  return text.repeat(Math.ceil(size / text.length)).slice(0, size)
}

const ordinaryMarkdown = `## What changed

The parser now reads **dates** with a zone, as in \`2026-11-16T03:00:00Z\`. See [the guide](https://example.com/dates) for all of them.

- a date without a time means the whole day
- a time without a zone means the local one

| input | meaning |
| ----- | ------- |
| today | the day on the clock of the machine |

`

const ordinaryCode = `function totalOf(orders) {
  let total = 0 // in cents
  for (const order of orders) {
    if (order.state === "paid") total += order.amount * (1 + order.tax / 100)
  }
  return { total, count: orders.length, label: "of " + orders.length + " orders" }
}

`

/**
 * Processor time in milliseconds: the clock would also count what others do on the machine. The time of this thread alone is known only
 * in steps of milliseconds.
 */
function timeOf(way: 'whole' | 'streamed', text: string, highlighter: Highlighter): number {
  const options = { theme, width, highlighter }
  const started = process.cpuUsage()
  if (way === 'whole') markdownLines(shownText(text), options)
  else {
    const streaming = new StreamingMarkdown(options)
    for (let piece = 1; piece <= pieces; piece++) {
      const soFar = text.slice(0, Math.ceil((text.length * piece) / pieces))
      streaming.lines(soFar)
    }
  }
  const { user, system } = process.cpuUsage(started)
  return (user + system) / 1000
}
