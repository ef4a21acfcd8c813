import type { CheckEnd } from '@tapetree/agent/variants'
import type { SnapshotStore } from '@tapetree/agent/workspace'
import { errorMembers, type Failure } from '../command-line/failure.ts'
import { costText, elapsedText } from '../text/amounts.ts'
import { shortIds } from '../text/describe-entry.ts'
import { harmless, harmlessLine } from '../text/harmless.ts'
import { outputTable, type Column } from '../text/output-table.ts'

type VariantPhase = 'waiting' | 'copying' | 'setting up' | 'working' | 'checking' | 'ended'

/** One variant, from the moment it waits for its turn. */
export interface VariantState {
  readonly number: number
  model: string
  phase: VariantPhase
  sessionId?: string
  folder?: string
  /** What the agent does at the moment. Harmless. */
  activity: string
  startedAtMs?: number
  durationMs?: number
  /** In US dollars. */
  cost: number
  /** `not-run`: it did not get its turn, or its copy could not be made. */
  outcome?: 'completed' | 'failed' | 'stopped' | 'not-run'
  failure?: Failure
  check?: CheckEnd
  diff?: { files: number; added: number; removed: number }
  /** The files that it ended with. */
  tree?: string
}

const columns: readonly Column[] = [
  { title: 'VARIANT', align: 'right' },
  { title: 'MODEL' },
  { title: 'RESULT' },
  { title: 'CHECK' },
  { title: 'FILES', align: 'right' },
  { title: 'LINES' },
  { title: 'COST', align: 'right' },
  { title: 'TIME', align: 'right' },
  { title: 'SESSION' },
]

export function variantsTable(variants: readonly VariantState[], width: number | undefined): string {
  const ids = shortIds(variants.flatMap(({ sessionId }) => sessionId ?? []))
  const rows = variants.map(({ number, model, outcome, check, diff, cost, durationMs, sessionId }) => [
    String(number),
    harmlessLine(model),
    outcome ?? 'not-run',
    checkText(check),
    diff ? String(diff.files) : '',
    diff ? `+${diff.added} -${diff.removed}` : '',
    costText(cost),
    durationMs === undefined ? '' : elapsedText(durationMs),
    sessionId === undefined ? '' : (ids.get(sessionId) ?? sessionId),
  ])
  return outputTable(columns, rows, width)
}

export function checkText(check: Pick<CheckEnd, 'exitCode'> | undefined): string {
  if (!check) return '-'
  if (check.exitCode === 0) return 'passed'
  return check.exitCode === 124 ? 'timeout' : `failed (${check.exitCode})`
}

/** As `--json` prints it. */
export function variantJson(variant: VariantState): Record<string, unknown> {
  const {
    number,
    model,
    outcome = 'not-run',
    sessionId,
    folder,
    check,
    diff,
    tree,
    cost,
    durationMs,
    failure,
  } = variant
  return {
    number,
    model,
    outcome,
    session_id: sessionId ?? null,
    folder: folder ?? null,
    check: check ? { exit_code: check.exitCode, duration_ms: check.durationMs, output: check.output } : null,
    diff: diff ?? null,
    tree: tree ?? null,
    cost,
    duration_ms: durationMs ?? null,
    error: failure ? errorMembers(failure) : null,
  }
}

/**
 * The best variant that completed and passed the check, if there is one: the one that changed the fewest lines, then the
 * cheapest. One that changed nothing is no candidate.
 */
export function bestVariant(variants: readonly VariantState[], hasCheck: boolean): VariantState | undefined {
  const good = variants.filter(
    ({ outcome, check, diff }) =>
      outcome === 'completed' && (!hasCheck || check?.exitCode === 0) && diff !== undefined && diff.files > 0,
  )
  const size = ({ diff }: VariantState): number => (diff?.added ?? 0) + (diff?.removed ?? 0)
  return good.toSorted((a, b) => size(a) - size(b) || a.cost - b.cost || a.number - b.number)[0]
}

interface Trees {
  from: string
  to: string
}

export async function diffSize(files: SnapshotStore, { from, to }: Trees): Promise<NonNullable<VariantState['diff']>> {
  const size = { files: 0, added: 0, removed: 0 }
  for (const counts of (await files.lineCounts(from, to)).values()) {
    size.files += 1
    size.added += counts?.added ?? 0
    size.removed += counts?.removed ?? 0
  }
  return size
}

const maxPatchBytes = 4 * 1024 * 1024

/** A unified diff that is safe for a terminal. */
export async function patchText(files: SnapshotStore, { from, to }: Trees): Promise<string> {
  const { patch, isCut } = await files.patch(from, to, { maxBytes: maxPatchBytes })
  return `${harmless(patch)}${isCut ? '\n… The diff is longer than 4 MiB.\n' : ''}`
}
