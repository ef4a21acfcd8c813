import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import type { Figure } from './figure/figure.ts'
import { entryOf, stepsOf } from './select-steps.ts'

const page = 'docs/reference/proofs.md'

test('the page of proofs and benches says what the programs say about themselves', async () => {
  const generated = await proofsPage()
  if (process.env['UPDATE_PROOFS_PAGE']) writeFileSync(page, generated)
  expect(withoutPadding(readFileSync(page, 'utf8'))).toBe(withoutPadding(generated))
}, 120_000)

/** In the order of `.ci/run`, which has every proof and bench. */
async function proofsPage(): Promise<string> {
  const rows: Record<'proof' | 'bench', string[]> = { proof: [], bench: [] }
  for (const step of stepsOf(readFileSync('.ci/run', 'utf8'))) {
    const entry = entryOf(step)
    if (entry === undefined) continue
    const figure = (await import(pathToFileURL(entry).href)) as Figure
    const kind = entry.startsWith('bench/') ? 'bench' : 'proof'
    rows[kind].push(rowOf(kind, figure))
  }
  return `# Proofs and benches

For each promise, a program tries to break it or measures it, and prints what it tried. CI runs the same programs. This page is generated
from them.

The default size is \`ci\` and takes seconds to minutes; \`-- --size full\` runs the size that the promises refer to. Every run prints its
seed, and \`-- --seed N\` repeats it. The last line of output is JSON. To list all programs:

\`\`\`sh
npm run proof
npm run bench
\`\`\`

## Proofs

A proof tries to break a promise. It fails if it succeeds in that.

${table(rows.proof)}

## Benches

A bench measures the bare operation and ours in turn and prints both. With \`-- --gate\` it fails if a figure is worse than twice the figure
in \`bench/accepted.json\`.

${table(rows.bench)}
`
}

function rowOf(kind: string, { name, claim, sizes }: Figure): string {
  const size = (which: 'ci' | 'full'): string => (sizes === undefined ? 'the same' : amountsOf(sizes[which]))
  return `| ${claim} | \`npm run ${kind} ${name}\` | ${size('ci')} | ${size('full')} |`
}

function table(rows: readonly string[]): string {
  return ['| promise | command | size `ci` | size `full` |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

/** `{ stalledReaders: 1000 }` becomes `stalled readers: 1,000`. */
function amountsOf(amounts: Readonly<Record<string, number>>): string {
  return Object.entries(amounts)
    .map(([key, amount]) => {
      const words = key.replaceAll(/[A-Z]+/g, (letters) => ` ${letters.toLowerCase()}`)
      return `${words}: ${amount === Infinity ? 'all' : amount.toLocaleString('en-US')}`
    })
    .join(', ')
}

/** The formatter aligns the columns of tables. */
function withoutPadding(text: string): string {
  return text.replaceAll(/ +/g, ' ').replaceAll(/-{3,}/g, '---')
}
