/** The 256 colours as xterm has them, except that the first sixteen are softer, as most people have set theirs. */
const named = [
  ...['#1d1f21', '#cc6666', '#8abf6a', '#d9b35f', '#7ea6d9', '#b294bb', '#7fc1ba', '#c5c8c6'],
  ...['#666b70', '#f28b82', '#a8d88a', '#f5d67b', '#9cc4ff', '#d3a6e8', '#9be0d8', '#ffffff'],
]
const steps = [0, 95, 135, 175, 215, 255]

export function paletteColour(index: number): string {
  const name = named[index]
  if (name !== undefined) return name
  if (index >= 232) return hex([0, 0, 0].map(() => 8 + 10 * (index - 232)))
  const cube = index - 16
  return hex([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((step) => steps[step] ?? 0))
}

function hex(channels: readonly number[]): string {
  return `#${channels.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`
}
