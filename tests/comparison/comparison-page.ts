// The page of the comparison. Lines are counted in the programs; what a library did comes from a run, or from the page itself if that
// library was not run.
import { readFileSync } from 'node:fs'
import { programs, rivals, tapetree, type Contender, type Program } from './contenders.ts'

export const comparisonPage = 'docs/reference/comparison.md'

/** Outcomes by library and program. */
export type Outcomes = Map<string, string>

export function keyOf(contender: Contender, program: Program): string {
  return `${contender.name}: ${program}`
}

/** The outcomes that the page tells. */
export function outcomesIn(page: string): Outcomes {
  const outcomes: Outcomes = new Map()
  let program = ''
  for (const line of page.split('\n')) {
    const heading = /^### (.+)$/.exec(line)?.[1]
    if (heading !== undefined) program = heading
    const [, name, , outcome] = line.split('|').map((cell) => cell.trim())
    const contender = [tapetree, ...rivals].find((each) => name === nameOf(each))
    const known = programs.find((each) => headings[each] === program)
    if (contender && known && outcome !== undefined) outcomes.set(keyOf(contender, known), outcome)
  }
  return outcomes
}

export function pageWith(outcomes: Outcomes): string {
  return `# Comparison of SDKs

The same four programs, written with tapetree and with three other libraries. Each runs against the same fake model and meets the same
accident. \`npm run proof comparison\` repeats ours and checks this page, which is generated; \`npm run proof comparison -- --size full\`
also installs and runs the others.

Lines are formatted lines that are not blank, imports included. The programs are in
[tests/comparison](../../tests/comparison) and [examples](../../examples).

| program | ${[tapetree, ...rivals].map(nameOf).join(' | ')} |
| --- | ${[tapetree, ...rivals].map(() => '---').join(' | ')} |
${programs.map((program) => `| ${headings[program]} | ${[tapetree, ...rivals].map((each) => `${linesOf(each.files(program))} lines`).join(' | ')} |`).join('\n')}

## What happened

${programs.map((program) => sectionOf(program, outcomes)).join('\n\n')}

## How we compared

- Each program follows the documentation of its library and uses what the library offers. If you know a shorter or safer way, tell us.
- The model is a function of the conversation that it is sent, so it makes the same decision for every library. It is served over HTTP in
  the format of Anthropic, and it rejects a call without a result, as the real provider does.
- Configuration files do not count, nor does the stand-in for Redis that the AI SDK uses to resume streams.
- The two screens of pi and the Claude Agent SDK are connected by an HTTP server of the program, without authentication. The AI SDK has a
  transport for screens, but a second screen has to ask whether an answer has begun. Our server checks tokens and pushes.
- The AI SDK also has durable agents in a package for its workflow platform, which we did not try.
- pi has newer versions. This is the newest one whose packages could all be installed.

## Other programs

These examples are complete programs, too. Tests run them; this proof opens the page in a browser and reloads it in the middle of an answer.

| program | lines |
| --- | --- |
${examples.map(({ files, what }) => `| [${what}](../../${files[0]}) | ${linesOf(files)} |`).join('\n')}
`
}

/** Examples without a counterpart in the comparison. */
const examples = [
  { files: ['examples/extensions/release-freeze.ts'], what: 'An extension with a hook, a tool, a command and a rule' },
  {
    files: ['examples/own-store/sqlite-store.ts'],
    what: 'A store of your own, in SQLite, which passes the contract of all stores',
  },
  {
    files: [
      'examples/browser-client/page.ts',
      'examples/browser-client/server.ts',
      'examples/browser-client/index.html',
    ],
    what: 'A page in a browser, its server and its HTML',
  },
]

const headings: Record<Program, string> = {
  'support-bot': 'Support bot',
  'eval-harness': 'Eval harness',
  'two-screens': 'Two screens',
  'structured-answer': 'Structured answer',
}

const descriptions: Record<Program, string> = {
  'support-bot':
    'A bot with two tools and sessions on disk. `kill -9` ends it while the shop makes a refund; then it is started again.',
  'eval-harness':
    'Fifty sessions on disk, each with one tool call. Each is forked after that call and continued by another model.',
  'two-screens':
    'A server, and two screens that watch an answer while it is streamed. One screen is killed in the middle and started again.',
  'structured-answer':
    'An answer with a schema and a tool call. It is aborted when its first text arrives, then continued.',
}

function sectionOf(program: Program, outcomes: Outcomes): string {
  const rows = [tapetree, ...rivals].map(
    (each) =>
      `| ${nameOf(each)} | ${linesOf(each.files(program))} | ${outcomes.get(keyOf(each, program)) ?? 'not run'} |`,
  )
  return `### ${headings[program]}\n\n${descriptions[program]}\n\n| library | lines | outcome |\n| --- | --- | --- |\n${rows.join('\n')}`
}

function nameOf({ name, version }: Contender): string {
  return `${name} ${version}`
}

function linesOf(files: readonly string[]): number {
  const lines = files.flatMap((file) => readFileSync(file, 'utf8').split('\n'))
  return lines.filter((line) => line.trim() !== '').length
}

/** The formatter aligns the columns of tables. */
export function withoutPadding(text: string): string {
  return text.replaceAll(/ +/g, ' ').replaceAll(/-{3,}/g, '---')
}
