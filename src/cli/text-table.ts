/** Columns of text for people; numbers stand right, words left. Pure. */

export interface Column<Row> {
  readonly title: string
  readonly align: 'left' | 'right'
  readonly value: (row: Row) => string
}

/** Lines without trailing spaces; the header first. */
export function textTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  const cells = [
    columns.map(column => column.title),
    ...rows.map(row => columns.map(column => plain(column.value(row)))),
  ]
  const widths = columns.map((_, index) => Math.max(...cells.map(line => line[index]!.length)))
  return cells.map(line =>
    line
      .map((cell, index) =>
        columns[index]!.align === 'right'
          ? cell.padStart(widths[index]!)
          : cell.padEnd(widths[index]!),
      )
      .join('  ')
      .trimEnd(),
  )
}

/** Names come from peers: what could move a terminal's cursor is shown as a dot. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '·')
}
