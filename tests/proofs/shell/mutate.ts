/** Changes a few letters of a command line: takes some out, puts some in, or some of another in their place. */
export function mutate(command: string, other: string, random: () => number): string {
  let mutated = command
  const count = 1 + Math.floor(random() * 3)
  for (let index = 0; index < count; index += 1) mutated = mutateOnce(mutated, other, random)
  return mutated
}

const letters = [
  '$',
  '(',
  ')',
  '`',
  '"',
  "'",
  '\\',
  '{',
  '}',
  '[',
  ']',
  '<',
  '>',
  '|',
  '&',
  ';',
  '\n',
  ' ',
  '#',
  '*',
  '?',
  '!',
  '~',
  '=',
  ':',
  '-',
  '@',
  ',',
  '\t',
]
const pieces = [
  '$(touch C)',
  '`touch C`',
  '> C',
  ';touch C',
  '<<E\n',
  '$((',
  '))',
  '${',
  '"$x"',
  "$'",
  '\\\n',
  '-o C',
  '-oC',
  '#',
  '<(',
  '&&',
  '||',
  'C',
]

function mutateOnce(command: string, other: string, random: () => number): string {
  const pick = (length: number): number => Math.floor(random() * length)
  const at = pick(command.length + 1)
  const [before, after] = [command.slice(0, at), command.slice(at)]
  const from = pick(other.length)
  switch (pick(6)) {
    case 0:
      return before + letters[pick(letters.length)]! + after
    case 1:
      return before + after.slice(1 + pick(3))
    case 2:
      return before + pieces[pick(pieces.length)]! + after
    case 3:
      return before + other.slice(from, from + 1 + pick(12)) + after
    case 4:
      return before + letters[pick(letters.length)]! + after.slice(1)
    default:
      return before + command.slice(pick(command.length)) + after
  }
}
