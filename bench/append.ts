import { openSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { text, type Session } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { compare } from '../scripts/figure/compare.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median } from '../scripts/figure/percentile.ts'

export const name = 'append'
export const claim = 'An append costs little more than the write and the sync that it needs.'
export const sizes = {
  ci: { durableAppends: 200, acceptedAppends: 5000 },
  full: { durableAppends: 1000, acceptedAppends: 20_000 },
}

/** What an append costs beside the system calls that it cannot do without. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const folder = await context.temporaryFolder()
  const one = await durableOneByOne(folder, context)
  const many = await durableByManyProducers(folder, context)
  const accepted = await acceptedOnly(folder, context)
  const figures = {
    durable_p50_ratio: round(one),
    producers_64_speedup: round(many.speedup),
    producers_64_to_group_commit_ratio: round(many.toGroupCommit),
    producers_64_to_made_group_commit_ratio: round(many.toMadeGroupCommit),
    accepted_ratio: round(accepted),
  }
  const ok = one <= 1.5 && many.speedup >= 8 && many.toGroupCommit <= 1.5 && accepted <= 2
  return { ok, figures }
}

/** One entry of about 1 KB. */
const content = 'A line of a conversation, long enough to be ordinary. '.repeat(15)

async function durableOneByOne(folder: string, context: FigureContext): Promise<number> {
  await using session = await newSession(join(folder, 'one'))
  const bytes = Buffer.from(`${await exampleLine(session)}\n`)
  const bare = await open(join(folder, 'one.bare'), 'a')
  const appends = sizes[context.size].durableAppends
  const { ratio } = await compare({
    label: 'durable append, p50 of one at a time',
    rounds: 7,
    say: context.say,
    bare: () =>
      p50(appends, async () => {
        await bare.write(bytes)
        await bare.datasync()
      }),
    ours: () => p50(appends, () => session.appendMessage('user', [text(content)])),
  })
  await bare.close()
  return ratio
}

async function durableByManyProducers(
  folder: string,
  context: FigureContext,
): Promise<{ speedup: number; toGroupCommit: number; toMadeGroupCommit: number }> {
  await using session = await newSession(join(folder, 'many'))
  const example = await exampleLine(session)
  const line = JSON.parse(example) as Record<string, unknown>
  const bytes = Buffer.from(`${example}\n`)
  const group = Buffer.concat(Array.from({ length: producers }, () => bytes))
  const bare = await open(join(folder, 'many.bare'), 'a')
  const rounds = context.size === 'full' ? 50 : 20
  const ours = async (): Promise<void> => {
    await Promise.all(
      Array.from({ length: producers }, async () => {
        for (let index = 0; index < rounds; index++) await session.appendMessage('user', [text(content)])
      }),
    )
  }
  const each = await compare({
    label: `${producers} producers against a write and a datasync for each record`,
    say: context.say,
    bare: async () => {
      for (let index = 0; index < rounds * producers; index++) {
        await bare.write(bytes)
        await bare.datasync()
      }
    },
    ours,
  })
  const grouped = await compare({
    label: `${producers} producers against a bare group commit`,
    rounds: 9,
    say: context.say,
    bare: async () => {
      for (let index = 0; index < rounds; index++) {
        await bare.write(group)
        await bare.datasync()
      }
    },
    ours,
  })
  const made = await compare({
    label: `${producers} producers against a bare group commit that also makes its lines`,
    rounds: 9,
    say: context.say,
    bare: async () => {
      for (let index = 0; index < rounds; index++) {
        await bare.write(Array.from({ length: producers }, () => bareLine(line)).join(''))
        await bare.datasync()
      }
    },
    ours,
  })
  await bare.close()
  return { speedup: 1 / each.ratio, toGroupCommit: grouped.ratio, toMadeGroupCommit: made.ratio }
}

const producers = 64

async function acceptedOnly(folder: string, context: FigureContext): Promise<number> {
  const store = openFileStore({ folder: join(folder, 'accepted'), durability: 'accepted' })
  await using session = await store.create()
  const line = JSON.parse(await exampleLine(session)) as Record<string, unknown>
  const bare = openSync(join(folder, 'accepted.bare'), 'a')
  const appends = sizes[context.size].acceptedAppends
  const { ratio } = await compare({
    label: 'accepted-only append',
    rounds: 9,
    say: context.say,
    bare: () => {
      for (let index = 0; index < appends; index++) {
        writeSync(bare, bareLine(line))
      }
    },
    ours: async () => {
      for (let index = 0; index < appends; index++) await session.appendMessage('user', [text(content)])
    },
  })
  return ratio
}

/** What making a line costs at the least: its JSON and its checksum. */
function bareLine(line: Record<string, unknown>): string {
  const body = JSON.stringify(line)
  return `${body.slice(0, -1)},"crc":"${crc32(body).toString(16)}"}\n`
}

async function newSession(folder: string): Promise<Session> {
  return openFileStore({ folder }).create()
}

/** The line that our side writes, so that the bare side writes as many bytes. */
async function exampleLine(session: Session): Promise<string> {
  const id = await session.appendMessage('user', [text(content)])
  for await (const line of session.lines()) if (line.type === 'line' && line.text.includes(id)) return line.text
  throw new Error('The line just appended is not in the log')
}

async function p50(count: number, operation: () => Promise<unknown>): Promise<number> {
  const samples: number[] = []
  for (let index = 0; index < count; index++) {
    const start = performance.now()
    await operation()
    samples.push(performance.now() - start)
  }
  return median(samples)
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
