import type { ArithmeticExpansionPart, ArithmeticExpression } from 'unbash'
import type { Word } from './word.ts'

/**
 * Whether arithmetic is free of side effects. A name in it is evaluated again, so `x='a[$(touch C)]'; echo $((x))` runs
 * a command: only numbers and variables that are known to contain one are accepted, and no assignments.
 */
export function isHarmlessArithmetic(
  part: Pick<ArithmeticExpansionPart, 'text' | 'expression'>,
  scope: NumberScope,
): boolean {
  const isPlain = /^(?:\$?\(\()[^$`'"\\[\]{};#@]*(?:\$[A-Za-z_?#][^$`'"\\[\]{};#@]*)*\)\)$/.test(part.text)
  return isPlain && !part.text.includes('$(', 2) && part.expression !== undefined && counts(part.expression, scope)
}

export interface NumberScope {
  variable: (name: string) => Word | undefined
}

function counts(expression: ArithmeticExpression, scope: NumberScope): boolean {
  switch (expression.type) {
    case 'ArithmeticWord':
      return isNumber(expression.value, scope)
    case 'ArithmeticGroup':
      return counts(expression.expression, scope)
    case 'ArithmeticUnary':
      return !/^(\+\+|--)$/.test(expression.operator) && counts(expression.operand, scope)
    case 'ArithmeticBinary':
      return !isAssignment(expression.operator) && counts(expression.left, scope) && counts(expression.right, scope)
    case 'ArithmeticTernary':
      return [expression.test, expression.consequent, expression.alternate].every((each) => counts(each, scope))
    case 'ArithmeticCommandExpansion':
      return false
    default:
      expression satisfies never
      return false
  }
}

function isAssignment(operator: string): boolean {
  return operator.endsWith('=') && !/^(?:[=!<>]=)$/.test(operator)
}

/** Whether a text is a number wherever one is expected. */
function isNumber(text: string, { variable }: NumberScope): boolean {
  if (/^(?:0x[0-9a-fA-F]+|[0-9]+)$/.test(text)) return true
  const name = /^\$?([A-Za-z_][A-Za-z0-9_]*|[?#])$/.exec(text)?.[1]
  const value = name === undefined ? undefined : variable(name)
  return value !== undefined && holdsNumber(value)
}

export function holdsNumber({ pieces, isSeveral }: Word): boolean {
  return (
    !isSeveral &&
    pieces.length > 0 &&
    pieces.every((piece, index) => {
      if (piece.type === 'text') return /^[0-9]+$/.test(piece.text)
      return piece.type === 'digits' || (piece.type === 'number' && index === 0)
    })
  )
}
