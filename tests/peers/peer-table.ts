export interface PeerRow {
  experiment: string
  others: string
  tapetree: string
}

/** As Markdown. */
export function peerTable(rows: readonly PeerRow[]): string {
  return ['| experiment | others | tapetree |', '| --- | --- | --- |', ...rows.map(lineOf)].join('\n')
}

/** Those that a page does not have word for word; how its columns are aligned does not count. */
export function rowsMissingIn(page: string, rows: readonly PeerRow[]): PeerRow[] {
  const lines = new Set(page.split('\n').map(withoutPadding))
  return rows.filter((row) => !lines.has(withoutPadding(lineOf(row))))
}

function lineOf({ experiment, others, tapetree }: PeerRow): string {
  return `| ${experiment} | ${others} | ${tapetree} |`
}

function withoutPadding(line: string): string {
  return line.replaceAll(/ +/g, ' ').trim()
}
