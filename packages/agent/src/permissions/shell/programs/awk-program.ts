/**
 * Whether an awk program only prints. Its text is not parsed: a slash or a quote in the wrong place would make the parser see
 * text where awk sees code. Instead nothing in it, not even in a string, may look like what writes, runs or connects.
 */
export function awkOnlyPrints(program: string): boolean {
  const withoutOr = program.replaceAll('||', '  ')
  if (/[|@]|system|getline|ARGV|ARGC|SYMTAB|FUNCTAB|PROCINFO|ENVIRON|extension|inet/.test(withoutOr)) return false
  // Only what follows a `print` can be sent to a file; before the first one, `>` compares.
  const print = program.indexOf('print')
  return print === -1 || !program.includes('>', print)
}
