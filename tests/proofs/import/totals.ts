import type { SourceName } from '../../../packages/cli/src/import/import-source.ts'

type Loose = Record<string, unknown>

/** Tokens and dollars that a recording reports, added up apart from the importer. */
export function totalsOf(source: SourceName, lines: readonly string[]): { tokens: number; cost: number } {
  const values = lines.filter(Boolean).map((line) => JSON.parse(line) as Loose)
  return readers[source](values)
}

const readers: Record<SourceName, (lines: Loose[]) => { tokens: number; cost: number }> = {
  'claude-code': (lines) => {
    const answers = new Map<unknown, Loose>()
    for (const { type, message } of lines)
      if (type === 'assistant') answers.set(loose(message)['id'], loose(loose(message)['usage']))
    const names = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens', 'output_tokens']
    const tokens = [...answers.values()].reduce((sum, usage) => sum + added(usage, names), 0)
    const costs = lines.filter(({ type }) => type === 'cost-state').map(({ totalCostUSD: cost }) => Number(cost))
    return { tokens, cost: costs.at(-1) ?? 0 }
  },
  codex: (lines) => {
    const totals = lines
      .map(({ payload }) => loose(loose(loose(payload)['info'])['total_token_usage'])['total_tokens'])
      .filter((total) => typeof total === 'number')
    return { tokens: totals.at(-1) ?? 0, cost: 0 }
  },
  pi: (lines) => {
    const usages = lines.map((line) => loose(loose(line['message'])['usage'] ?? line['usage']))
    const tokens = usages.reduce((sum, usage) => sum + added(usage, ['input', 'output', 'cacheRead', 'cacheWrite']), 0)
    return { tokens, cost: usages.reduce((sum, usage) => sum + (Number(loose(usage['cost'])['total']) || 0), 0) }
  },
  opencode: (rows) => {
    const steps = rows.map(({ data }) => loose(data)).filter(({ type }) => type === 'step-finish')
    const tokens = steps.reduce((sum, step) => sum + Number(loose(step['tokens'])['total']), 0)
    return { tokens, cost: steps.reduce((sum, { cost }) => sum + Number(cost), 0) }
  },
  gemini: (lines) => {
    const answers = new Map(
      lines.filter(({ type }) => type === 'gemini').map((line) => [line['id'], loose(line['tokens'])]),
    )
    return { tokens: [...answers.values()].reduce((sum, { total }) => sum + Number(total), 0), cost: 0 }
  },
}

function added(counts: Loose, names: readonly string[]): number {
  return names.reduce((sum, name) => sum + (Number(counts[name]) || 0), 0)
}

function loose(value: unknown): Loose {
  return typeof value === 'object' && value !== null ? (value as Loose) : {}
}
