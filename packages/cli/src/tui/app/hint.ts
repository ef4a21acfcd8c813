export interface HintSituation {
  isBusy: boolean
  /** A command that was typed here. */
  runsCommand: boolean
  enterSteers: boolean
  isAtNewest: boolean
  hasPostponed: boolean
  isVim: boolean
}

/** What the most useful keys do just now. */
export function hintFor({ isBusy, runsCommand, enterSteers, isAtNewest, hasPostponed, isVim }: HintSituation): string {
  const keys = [
    ...(isAtNewest ? [] : ['End to the newest']),
    ...(hasPostponed ? ['Enter shows the question'] : []),
    ...(runsCommand && !isBusy ? ['Ctrl-C stops your command'] : []),
    ...(isBusy
      ? [
          enterSteers ? 'Enter steers' : 'Enter queues',
          'Alt-Enter steers',
          isVim ? 'Ctrl-C stops' : 'Esc stops',
          'Ctrl-Q queue',
        ]
      : ['Enter sends', 'Alt-Enter new line', '@ files', '! shell', '/help']),
  ]
  return keys.join(' · ')
}
