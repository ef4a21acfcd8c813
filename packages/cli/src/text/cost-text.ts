/** US dollars, to the cent: more digits say nothing to people. */
export function costText(cost: number): string {
  if (cost === 0) return '$0'
  return cost < 0.01 ? '< $0.01' : `$${cost.toFixed(2)}`
}
