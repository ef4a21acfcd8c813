/** Where two logs differ: a sentence for each member that changed, and each line that came or went as it stands. */
export function describeDifference(before: readonly string[], after: readonly string[]): string[] {
  const said: string[] = []
  let [left, right] = [0, 0]
  for (const [nextLeft, nextRight] of [...commonLines(before, after), [before.length, after.length] as const]) {
    said.push(...describeHunk(before.slice(left, nextLeft), after.slice(right, nextRight), right + 1))
    left = nextLeft + 1
    right = nextRight + 1
  }
  return said
}

/** The places of the lines that both have, in order: the longest such list. */
function commonLines(before: readonly string[], after: readonly string[]): [left: number, right: number][] {
  const longest = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1))
  const at = (left: number, right: number): number => longest[left]?.[right] ?? 0
  for (let left = before.length - 1; left >= 0; left--) {
    for (let right = after.length - 1; right >= 0; right--) {
      const isSame = before[left] === after[right]
      const length = isSame ? at(left + 1, right + 1) + 1 : Math.max(at(left + 1, right), at(left, right + 1))
      longest[left]?.fill(length, right, right + 1)
    }
  }
  const common: [number, number][] = []
  let [left, right] = [0, 0]
  while (left < before.length && right < after.length) {
    if (before[left] === after[right]) common.push([left++, right++])
    else if (at(left + 1, right) >= at(left, right + 1)) left++
    else right++
  }
  return common
}

/** Lines that stand in the same place and are of the same type are one line that changed. */
function describeHunk(gone: readonly string[], come: readonly string[], lineNumber: number): string[] {
  const isChanged =
    gone.length === come.length && gone.every((line, index) => typeOf(line) === typeOf(come[index] ?? ''))
  if (!isChanged) return [...gone.map((line) => `- ${line}`), ...come.map((line) => `+ ${line}`)]
  return gone.flatMap((line, index) => {
    const changes = describeMembers(membersOf(line), membersOf(come[index] ?? ''))
    const what = changes.length === 0 ? ['the same members in another order', `- ${line}`, `+ ${come[index]}`] : changes
    return [`line ${lineNumber + index}, ${typeOf(line)}:`, ...what.map((change) => `  ${change}`)]
  })
}

function describeMembers(before: Map<string, string>, after: Map<string, string>): string[] {
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].flatMap((name) => {
    const [was, is] = [before.get(name) ?? 'nothing', after.get(name) ?? 'nothing']
    return was === is ? [] : [`${name}: ${was} became ${is}`]
  })
}

function typeOf(line: string): string {
  return membersOf(line).get('type') ?? ''
}

/** Every value in a line by its path, such as `message.content.0.type`. */
function membersOf(line: string): Map<string, string> {
  const members = new Map<string, string>()
  const walk = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) members.set(path, JSON.stringify(value))
    else for (const [name, inner] of Object.entries(value)) walk(inner, path === '' ? name : `${path}.${name}`)
    if (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
      members.set(path, JSON.stringify(value))
  }
  if (line !== '') walk(JSON.parse(line), '')
  return members
}
