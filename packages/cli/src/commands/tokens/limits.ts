import { limitsSchema, type LimitName, type Limits } from '@tapetree/client/protocol'
import { listOption, type Invocation } from '../../command-line/command.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { didYouMean } from '../../text/did-you-mean.ts'
import { harmlessLine } from '../../text/harmless.ts'

const names = Object.keys(limitsSchema.shape).map(dashed)

/** The values of `--limit`; undefined if there are none. */
export function limitsOf(invocation: Invocation): Limits | undefined {
  const limits: Limits = {}
  for (const given of listOption(invocation, 'limit')) {
    const [name = '', amount = ''] = given.split('=')
    if (!names.includes(name)) {
      throw usageFailure(
        `--limit ${JSON.stringify(harmlessLine(name))} does not exist.${didYouMean(name, names)} The limits are ${names.join(', ')}.`,
      )
    }
    const key = name.replaceAll('-', '_') as LimitName
    const parsed = limitsSchema.safeParse({ [key]: amountOf(key, amount) })
    if (!parsed.success) {
      throw usageFailure(`${JSON.stringify(harmlessLine(amount))} is not an amount for --limit ${name}.`, [
        `tapetree tokens create --limit ${name}=${key === 'storage_bytes' ? '500MB' : '10'}`,
      ])
    }
    Object.assign(limits, parsed.data)
  }
  return Object.keys(limits).length > 0 ? limits : undefined
}

/** `spend-per-day 1.5 of 5`, one for each limit. */
export function limitTexts(limits: Limits, usage: Limits = {}): string[] {
  return (Object.entries(limits) as [LimitName, number][]).map(([name, most]) => {
    const used = usage[name]
    return `${dashed(name)} ${used === undefined ? '' : `${rounded(used)} of `}${rounded(most)}`
  })
}

function dashed(name: string): string {
  return name.replaceAll('_', '-')
}

function rounded(amount: number): number {
  return Math.round(amount * 100) / 100
}

const units: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 }

function amountOf(name: LimitName, text: string): number {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)(?:([kmgt])?b)?$/i.exec(text) ?? []
  if (digits === undefined || (name !== 'storage_bytes' && digits !== text)) return Number.NaN
  const amount = Number(digits) * (units[unit.toLowerCase()] ?? Number.NaN)
  return name === 'storage_bytes' ? Math.round(amount) : amount
}
