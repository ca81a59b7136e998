/** The number that an option holds, or the default where it was not given. */
export function asked(text, otherwise) {
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (!(number > 0)) throw new Error(`"${text}" is no number above 0`);
  return number;
}
