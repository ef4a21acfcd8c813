import type { VerifyReport } from '@tapetree/session'
import { harmlessLine } from '../text/harmless.ts'

/** A verdict on one log, and a line for each fault. */
export function verifyText(id: string, report: VerifyReport): string {
  if (report.isIntact) return `${id}  ok, ${report.lines} lines\n`
  const { damage, damageCount, missingBlobs, unfinishedBytes, lines, lostLines } = report
  const faults = [
    ...damage.map(
      ({ seq, at, size, count, reason }) =>
        `line ${seq} at byte ${at} (${size} bytes${count > 0 ? `, ${count} lost` : ''}): ${harmlessLine(reason)}`,
    ),
    ...(damageCount > damage.length ? [`${damageCount - damage.length} more places`] : []),
    ...(unfinishedBytes > 0 ? [`${unfinishedBytes} bytes behind the last line: being written, or torn`] : []),
    ...missingBlobs.map((sha256) => `blob ${sha256} is missing`),
  ]
  const head = `${id}  DAMAGED, ${lines} lines read, ${lostLines} lost\n`
  return head + faults.map((fault) => `  ${fault}\n`).join('')
}
