// Runs one bench or one proof: `figure.ts bench|proof [name] [--size ci|full] [--seed N] [--gate]`.
import { globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type { Figure, FigureContext, FigureResult } from './figure/figure.ts'
import { type AcceptedFigure, worseThanTwice } from './figure/gate.ts'
import { randomFrom } from './figure/random.ts'
import { slowness } from './figure/slowness.ts'

const folders = { bench: 'bench', proof: 'tests/proofs' }

interface Options {
  kind: keyof typeof folders
  name: string
  size: FigureContext['size']
  seed: number
  gate: boolean
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  if (options.name === '') {
    for (const name of namesOf(options.kind)) console.log(name)
    return
  }
  const { ok, figures, failed } = await runFigure(options)
  // Proofs may leave handles behind after a failure; the answer must still come out, and last.
  process.stdout.write(`${JSON.stringify({ name: options.name, ok, figures })}\n`, () => process.exit(failed ? 1 : 0))
}

async function runFigure(options: Options): Promise<FigureResult & { failed: boolean }> {
  const { kind, name, size, seed } = options
  const folderList: string[] = []
  const context: FigureContext = {
    size,
    seed,
    random: randomFrom(seed),
    say: (line) => console.log(line),
    temporaryFolder: async () => {
      const folder = await mkdtemp(join(tmpdir(), `tapetree-${name}-`))
      folderList.push(folder)
      return folder
    },
  }
  console.log(`${kind} ${name}, size ${size}, seed ${seed}`)
  const slowerBefore = slowness()
  const start = performance.now()
  try {
    const figure = await load(options)
    const result = await figure.run(context)
    console.log(`${kind} ${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`)
    if (kind === 'proof') return { ...result, failed: !result.ok }
    return { ...result, failed: options.gate && !passesGate(name, result, slowerBefore) }
  } catch (error) {
    console.error(error)
    return { ok: false, figures: { error: error instanceof Error ? error.message : String(error) }, failed: true }
  } finally {
    for (const folder of folderList) await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function load({ kind, name }: Options): Promise<Figure> {
  if (!namesOf(kind).includes(name))
    throw new Error(`There is no ${kind} ${name}; there are: ${namesOf(kind).join(', ')}`)
  const figure = (await import(pathToFileURL(resolve(folders[kind], `${name}.ts`)).href)) as Figure
  if (figure.name !== name) throw new Error(`${folders[kind]}/${name}.ts exports the name ${figure.name}`)
  return figure
}

function passesGate(name: string, { figures }: FigureResult, slowerBefore: number): boolean {
  const all = JSON.parse(readFileSync('bench/accepted.json', 'utf8')) as Record<string, Record<string, AcceptedFigure>>
  const accepted = all[name] ?? {}
  for (const [figure, { accepted: limit, target }] of Object.entries(accepted)) {
    console.log(`${figure}: ${figures[figure]} (accepted ${limit}, target ${target})`)
  }
  const slower = Math.max(slowerBefore, slowness())
  if (slower > 1.2)
    console.log(`the machine is ${slower.toFixed(1)} times slower than the quiet one that limits in ms are for`)
  const worse = worseThanTwice(accepted, figures, slower)
  for (const sentence of worse) console.error(`GATE: ${sentence}`)
  return worse.length === 0
}

function readOptions(argv: string[]): Options {
  const { values, positionals } = parseArgs({
    args: argv,
    allowPositionals: true,
    options: {
      ...{ size: { type: 'string' }, seed: { type: 'string' }, gate: { type: 'boolean' } },
      store: { type: 'string' },
    },
  })
  const [kind, given = '', ...rest] = positionals
  const store = values.store ?? swallowed('store', rest, /^(file|postgres)$/) ?? 'file'
  if (store !== 'file' && store !== 'postgres') throw new Error(`--store is file or postgres, not ${store}`)
  // The benches of a database are programs of their own: `bench open --store postgres` is `bench pg-open`.
  const name = store === 'postgres' ? `pg-${given}` : given
  if (kind !== 'bench' && kind !== 'proof') throw new Error(`Expected bench or proof, not ${kind}`)
  const size = values.size ?? swallowed('size', rest, /^(ci|full)$/) ?? 'ci'
  if (size !== 'ci' && size !== 'full') throw new Error(`--size is ci or full, not ${size}`)
  const seed = Number(values.seed ?? swallowed('seed', rest, /^\d+$/) ?? Math.floor(Math.random() * 2 ** 32))
  if (!Number.isSafeInteger(seed)) throw new Error('--seed is a whole number')
  return { kind, name, size, seed, gate: values.gate ?? process.env['npm_config_gate'] === 'true' }
}

/**
 * npm takes a flag that does not stand after `--` for its own and passes it on as `npm_config_*`:
 * `--size=full` with its value, `--size full` as `true`, with the value left among the arguments.
 */
function swallowed(flag: string, rest: string[], shape: RegExp): string | undefined {
  const value = process.env[`npm_config_${flag}`]
  return value === 'true' ? rest.find((argument) => shape.test(argument)) : value
}

function namesOf(kind: Options['kind']): string[] {
  return globSync(`${folders[kind]}/*.ts`, { exclude: ['**/*.test.ts'] })
    .map((file) => basename(file, '.ts'))
    .sort()
}

await main()
