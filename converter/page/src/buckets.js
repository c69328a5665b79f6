// Buckets of the reports `latency` (bounds of 1, 2 and 5 times a power of ten ns) and `amount` (powers of two bytes). Bucket 0 is for
// values below 1.

const LEADS = [1, 2, 5];

// Must number the buckets as sql/views/page/request.sql does.
export function latencyBucket(value) {
  if (value < 1) return 0;
  const digits = String(value);
  const lead = digits[0] < '2' ? 2 : digits[0] < '5' ? 1 : 0;
  return digits.length * 3 - lead;
}

export function amountBucket(value) {
  let bucket = 0;
  for (let bound = 1; bound <= value && bucket < 51; bound *= 2) bucket++;
  return bucket;
}

const latencyLower = (bucket) => (bucket === 0 ? 0 : LEADS[(bucket - 1) % 3] * 10 ** Math.floor((bucket - 1) / 3));
const amountLower = (bucket) => (bucket === 0 ? 0 : 2 ** (bucket - 1));

export const LATENCY = {of: latencyBucket, lower: latencyLower, upper: (bucket) => latencyLower(bucket + 1)};
export const AMOUNT = {of: amountBucket, lower: amountLower, upper: (bucket) => amountLower(bucket + 1)};

// Ten buckets for each power of ten: finer than those of the report, for a page that has every latency.
const fineLower = (bucket) => (bucket === 0 ? 0 : Math.round(10 ** ((bucket - 1) / 10)));

export function fineBucket(value) {
  if (value < 1) return 0;
  let bucket = Math.floor(Math.log10(value) * 10) + 1;
  while (bucket > 1 && fineLower(bucket) > value) bucket--;
  while (fineLower(bucket + 1) <= value) bucket++;
  return bucket;
}

export const FINE = {of: fineBucket, lower: fineLower, upper: (bucket) => fineLower(bucket + 1)};

// Returns the place of a value of at least 1 on an axis on which each bucket is 1 wide. Within a bucket the axis is logarithmic.
export function position(buckets, value) {
  const bucket = buckets.of(value);
  const [low, high] = [buckets.lower(bucket), buckets.upper(bucket)];
  return high > low ? bucket + Math.log(value / low) / Math.log(high / low) : bucket;
}
