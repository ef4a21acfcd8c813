/** `1 entry`, `2 entries`, `10,000 entries`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${numberText(count)} ${count === 1 ? one : many}`
}

function numberText(count: number): string {
  return count < 1000 ? String(count) : count.toLocaleString('en')
}
