import type { Io, Output } from './io.ts'

/** Follows the conventions of `NO_COLOR` and `FORCE_COLOR`; by default only terminals get color. */
export function hasColor(output: Pick<Output, 'isTTY'>, env: Io['env']): boolean {
  const { NO_COLOR: none, FORCE_COLOR: forced, TERM: terminal } = env
  if (none !== undefined && none !== '') return false
  if (forced !== undefined && forced !== '') return forced !== '0' && forced !== 'false'
  return output.isTTY === true && terminal !== 'dumb'
}

export interface Styles {
  bold: (text: string) => string
  dim: (text: string) => string
  red: (text: string) => string
  green: (text: string) => string
  yellow: (text: string) => string
  cyan: (text: string) => string
}

export function stylesFor(output: Pick<Output, 'isTTY'>, env: Io['env']): Styles {
  const style = hasColor(output, env)
    ? (open: number, close: number) => (text: string) => `\u001b[${open}m${text}\u001b[${close}m`
    : () => (text: string) => text
  return {
    bold: style(1, 22),
    dim: style(2, 22),
    red: style(31, 39),
    green: style(32, 39),
    yellow: style(33, 39),
    cyan: style(36, 39),
  }
}
