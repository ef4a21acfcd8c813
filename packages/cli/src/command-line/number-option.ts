import { textOption, type Invocation } from './command.ts'
import { usageFailure } from './failure.ts'

/** A number over zero; anything else is a mistake that is said. */
export function numberOption(invocation: Invocation, name: string): number | undefined {
  const value = textOption(invocation, name)
  if (value === undefined) return undefined
  const number = Number(value)
  if (value.trim() === '' || !Number.isFinite(number) || number <= 0) {
    throw usageFailure(`--${name} is a number over 0, not ${JSON.stringify(value)}.`)
  }
  return number
}
