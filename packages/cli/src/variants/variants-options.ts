import { flag, numberOption, textOption, type Invocation } from '../command-line/command.ts'
import { usageFailure } from '../command-line/failure.ts'
import { runOptionsOf, type RunOptions } from '../print/run-options.ts'
import type { ConflictPolicy } from './choose-variant.ts'

/** The options of `run --variants`. */
export interface VariantsOptions {
  run: RunOptions
  count: number
  /** As typed, in turn. Empty: the default model. */
  models: readonly string[]
  check?: string
  checkTimeoutMs: number
  setup?: string
  /** How many run at once. */
  parallel: number
  /** In US dollars, of all variants together. */
  maxCost?: number
  /** Absent: ask on a terminal, otherwise decide later. */
  choose?: 'best' | 'none' | number
  conflicts: ConflictPolicy
}

const maxVariants = 16
const defaultParallel = 4
const defaultCheckTimeoutS = 600

/** The options that have a meaning only together with `--variants`. */
const onlyWithVariants = ['check', 'check-timeout', 'setup', 'parallel', 'choose', 'conflicts']
/** They concern one answer. */
const notWithVariants = ['jsonl', 'output-schema', 'input']

/** Undefined without `--variants`. */
export function variantsOptionsOf(invocation: Invocation): VariantsOptions | undefined {
  const { values } = invocation
  if (values['variants'] === undefined) {
    const alone = onlyWithVariants.find((name) => values[name] !== undefined)
    if (alone !== undefined) throw usageFailure(`--${alone} requires --variants.`, ['tapetree run --help'])
    return undefined
  }
  const excluded = notWithVariants.find((name) => values[name] !== undefined && values[name] !== 'text')
  if (excluded !== undefined)
    throw usageFailure(`--${excluded} cannot be used with --variants.`, ['tapetree run --help'])
  const count = wholeNumber(invocation, 'variants') ?? 0
  if (count > maxVariants)
    throw usageFailure(`--variants can be at most ${maxVariants}, because each has its own copy.`)
  const { model, ...run } = runOptionsOf(invocation)
  const models = (model ?? '')
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
  if (models.length > count)
    throw usageFailure(`--model names ${models.length} models, but there are only ${count} variants.`)
  const check = textOption(invocation, 'check')
  const setup = textOption(invocation, 'setup')
  const maxCost = numberOption(invocation, 'max-cost')
  const choose = chooseOption(invocation, count)
  if (choose === undefined && flag(invocation, 'json') && values['conflicts'] !== undefined)
    throw usageFailure('--conflicts requires --choose.')
  return {
    run,
    count,
    models,
    ...(check !== undefined && { check }),
    checkTimeoutMs: (numberOption(invocation, 'check-timeout') ?? defaultCheckTimeoutS) * 1000,
    ...(setup !== undefined && { setup }),
    parallel: Math.min(count, wholeNumber(invocation, 'parallel') ?? defaultParallel),
    ...(maxCost !== undefined && { maxCost }),
    ...(choose !== undefined && { choose }),
    conflicts: conflictsOption(invocation),
  }
}

export function conflictsOption(invocation: Invocation): ConflictPolicy {
  return (textOption(invocation, 'conflicts') ?? 'ask') as ConflictPolicy
}

function wholeNumber(invocation: Invocation, name: string): number | undefined {
  const number = numberOption(invocation, name)
  if (number !== undefined && !Number.isInteger(number)) throw usageFailure(`--${name} must be a whole number.`)
  return number
}

function chooseOption(invocation: Invocation, count: number): VariantsOptions['choose'] {
  const typed = textOption(invocation, 'choose')
  if (typed === undefined || typed === 'best' || typed === 'none') return typed
  const number = Number(typed)
  if (Number.isInteger(number) && number >= 1 && number <= count) return number
  throw usageFailure(`--choose must be best, none or a number from 1 to ${count}, not ${JSON.stringify(typed)}.`)
}
